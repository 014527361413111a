// Nodes, shards, databases, what jobs are delivered to, and who changed what.
import {html, useMemo} from '../vendor/preact.js';
import {length, number, zoneName} from '../format.js';
import {useGet} from '../rest.js';
import {link} from '../state.js';
import {isFine, remedy, troublesOf} from './overview.js';
import {Badge, Count, Foreign, Good, Missed, Missing, Panel, Stale, Table, TableCsv, Time, Title} from '../ui.js';

const kShardPages = 5; // of 1,000: an installation has 1,024 at most
const kStale = 10_000; // ms since the last scan: longer than any interval between two

const css = (node, index) => `n${((index.get(node) || 1) - 1) % 8}`;

function Nodes({nodes, index}) {
  if (!nodes.data) return html`<${Missing} answer=${nodes} what="The list of nodes" />`;
  const isShared = (name) => nodes.data.items.filter((n) => n.node === name).length > 1;
  return html`<${Stale} answer=${nodes} /><${Table} caption="Nodes" rows=${nodes.data.items} rowKey=${(n) => n.id} columns=${[
    {label: 'Node', cell: (n) => html`<span class="nowrap"><span class=${`mark ${css(n.node, index)}`} title="Its mark in the map of shards">${index.get(n.node)}</span><${Foreign} text=${n.node} mono=${false} clip /></span>${isShared(n.node) && html`<span class="sub">shares its name and mark</span>`}`},
    {label: 'State', cell: (n) => html`<${Badge} icon=${n.state === 'active' ? '✓' : n.state === 'draining' ? '↘' : '✕'} kind=${n.state === 'active' ? 'good' : n.state === 'draining' ? 'warn' : 'bad'}>${n.state}<//>`},
    {label: 'Shards', isNumber: true, cell: (n) => html`<${Count} n=${n.shards} />`},
    {label: 'Heartbeat', isNumber: true, holds: 'age', cell: (n) => html`<span class="nowrap">${length(n.heartbeat_age_ms)} ago</span>`},
    {label: 'Version', cell: (n) => n.version},
  ]} />`;
}

const isStale = (s) => s.node === null || (s.scanned_age_ms !== null && s.scanned_age_ms > kStale);

function ShardMap({shards, index}) {
  if (!shards.data) return html`<${Missing} answer=${shards} what="The list of shards" />`;
  const items = shards.data.items;
  return html`<${Stale} answer=${shards} /><${Missed} data=${shards.data} />
    <ul class="shards" aria-label="Shards">${items.map((s) => {
      const mark = s.node === null ? '–' : index.get(s.node) ?? '?';
      const text = `Shard ${s.shard}: ${s.node === null ? 'scanned by none' : `${s.node}, scanned ${length(s.scanned_age_ms)} ago`}, in ${s.database}, ${number(s.pending_due_soon)} due soon${s.move ? `, ${s.move.state} to ${s.move.to}` : ''}`;
      return html`<li class=${isStale(s) ? 'none' : `${css(s.node, index)}${s.move ? ' moving' : ''}`} title=${text}><span class="visually-hidden">${text}</span><span aria-hidden="true">${s.shard}<small>${mark}</small></span></li>`;
    })}</ul>
    <p class="muted small-text">Below the number of a shard: the mark of the node that scans it. Hatched: scanned by none, or not for ${length(kStale)}. Framed: moving to another database.</p>`;
}

function Databases({shards, ready}) {
  const rows = useMemo(() => {
    const all = new Map();
    for (const s of (shards.data && shards.data.items) || []) {
      const row = all.get(s.database) || {name: s.database, shards: 0, dueSoon: 0, moves: 0};
      row.shards += 1;
      row.dueSoon += s.pending_due_soon || 0;
      row.moves += s.move ? 1 : 0;
      all.set(s.database, row);
    }
    return [...all.values()];
  }, [shards.data]);
  const missing = (shards.data && shards.data.missing) || [];
  return html`${rows.length > 0 && html`<${Table} caption="Databases" rows=${rows} rowKey=${(r) => r.name} columns=${[
      {label: 'Database', cell: (r) => r.name},
      {label: 'State', cell: (r) => html`<${Good} is=${!missing.includes(r.name) && !shards.error} yes="answers" no="unavailable" />`},
      {label: 'Shards', isNumber: true, cell: (r) => number(r.shards)},
      {label: 'Due within 5 s', isNumber: true, cell: (r) => number(r.dueSoon)},
      {label: 'Moves', isNumber: true, cell: (r) => number(r.moves)},
    ]} />`}
    <${Checks} ready=${ready} />`;
}

// The checks of /readyz of this node: those that are ok in one line, the others with their remedy.
function Checks({ready}) {
  const all = Object.entries((ready.data && ready.data.checks) || {}), bad = troublesOf(ready.data && ready.data.checks);
  const warnings = (ready.data && ready.data.warnings) || [];
  return html`<div class="stack checks"><p class="muted small-text">${all.filter(([, state]) => isFine(state)).map(([name, state]) => html`<span class="chip">✓ ${name}${state === 'ok' ? '' : `: ${state}`}</span> `)}</p>
    ${(bad.length > 0 || warnings.length > 0) && html`<ul class="list">${bad.map(([what, helps]) => html`<li class="note bad"><span class="body"><strong>${what}</strong> ${helps}</span></li>`)}
      ${warnings.map((text) => html`<li class="note warn"><span class="body">${text}. ${remedy(text)}</span></li>`)}</ul>`}</div>`;
}

const kPeers = {ok: ['✓', 'good', 'answers'], paused: ['❚❚', 'bad', 'paused'], trying: ['…', 'warn', 'trying one at a time'], unavailable: ['✕', 'bad', 'unavailable'], idle: ['–', 'quiet', 'idle']};
const PeerState = ({peer}) => {
  const [icon, kind, text] = kPeers[peer.state] || ['?', 'quiet', peer.state];
  return html`<${Badge} icon=${icon} kind=${kind}>${text}${peer.pause_left_ms > 0 ? ` for ${length(peer.pause_left_ms)}` : ''}<//>`;
};
const kPeerColumns = [
  {label: 'Endpoint', cell: (p) => html`<${Foreign} text=${p.endpoint} /><span class="sub">${p.kind}</span>`, csv: (p) => p.endpoint},
  {label: 'State', cell: (p) => html`<${PeerState} peer=${p} />`, csv: (p) => p.state},
  {label: 'In flight', isNumber: true, cell: (p) => html`<${Count} n=${p.in_flight} />${p.limit !== null && html`<span class="sub">of ${number(p.limit)}</span>`}`, csv: (p) => p.in_flight},
  {label: 'Answers in', isNumber: true, holds: 'length', cell: (p) => (p.mean_ms === null ? html`<span class="zero">–</span>` : length(p.mean_ms)), csv: (p) => p.mean_ms},
  {label: 'Last error', holds: 'age', cell: (p) => (p.last_error ? html`<${Foreign} text=${p.last_error} />${p.last_error_age_ms !== null && html`<span class="sub">${length(p.last_error_age_ms)} ago</span>`}` : html`<span class="zero">none</span>`), csv: (p) => p.last_error},
];

function Peers({peers}) {
  const all = (peers.data && peers.data.items) || [], hooks = all.filter((p) => p.kind === 'webhook'), brokers = all.filter((p) => p.kind !== 'webhook');
  const panel = (title, rows, empty) => html`<${Panel} title=${title} note=${peers.data ? `as ${peers.data.node} sees them` : ' '} actions=${rows.length > 0 && html`<${TableCsv} name=${title} columns=${kPeerColumns} rows=${rows} />`}>
    ${!peers.data ? html`<${Missing} answer=${peers} what="The list" />` : rows.length === 0 ? html`<p class="muted">${empty}</p>` : html`<${Stale} answer=${peers} /><${Table} caption=${title} rows=${rows} rowKey=${(p, i) => `${p.kind} ${p.endpoint} ${i}`} columns=${kPeerColumns} />`}<//>`;
  return html`${panel('Endpoints', hooks, 'This node delivers no webhook yet.')}${panel('Brokers', brokers, html`No type publishes to a broker, and no entry topic is read. See handler kinds amqp, kafka and redis, and <code class="nowrap">--entry</code>.`)}`;
}

function Moves({shards}) {
  if (!shards.data) return html`<${Missing} answer=${shards} what="The list of moves" />`;
  const moving = ((shards.data && shards.data.items) || []).filter((s) => s.move);
  if (moving.length === 0) return html`<p class="muted">No shard is moving. <code>tocsin shard move</code> starts a move.</p>`;
  return html`<${Table} caption="Moves" rows=${moving} rowKey=${(s) => s.shard} columns=${[
    {label: 'Shard', isNumber: true, cell: (s) => s.shard}, {label: 'From', cell: (s) => s.database}, {label: 'To', cell: (s) => s.move.to}, {label: 'State', cell: (s) => s.move.state}]} />`;
}

// What an action of the REST interface is called here.
const kAuditWords = {putType: 'set the type', deleteType: 'deleted the type', pauseType: 'paused', resumeType: 'resumed', createJob: 'created jobs', createJobs: 'created jobs', cancelJob: 'cancelled', cancelJobs: 'cancelled jobs', rescheduleJob: 'rescheduled',
  runJob: 'ran now', retryJob: 'retried', retryJobs: 'retried dead jobs', startBulk: 'began a bulk change', stopBulk: 'stopped the bulk change'};
const auditWords = (a) => (a.action === 'startBulk' && a.filter && a.filter.action ? `began a bulk ${a.filter.action}` : kAuditWords[a.action] || a.action);
const kAudit = [
  {label: 'When', cell: (a) => html`<span class="nowrap"><${Time} at=${a.at} /></span>`, csv: (a) => a.at},
  {label: 'Who', cell: (a) => html`<${Foreign} text=${a.actor} mono=${false} /><span class="sub">${a.role}${a.address ? `, ${a.address}` : ''}</span>`, csv: (a) => a.actor},
  {label: 'Did', cell: (a) => html`<span title=${a.action}>${auditWords(a)}</span> <${Foreign} text=${a.target || ''} />${a.filter && html`<span class="sub"><${Foreign} text=${typeof a.filter === 'string' ? a.filter : JSON.stringify(a.filter)} clip /></span>`}`, csv: (a) => `${a.action} ${a.target || ''}`},
  {label: 'Matched', isNumber: true, cell: (a) => (a.matched === null ? '' : number(a.matched)), csv: (a) => a.matched},
  {label: 'Changed', isNumber: true, cell: (a) => (a.changed === null ? '' : number(a.changed)), csv: (a) => a.changed},
  {label: 'Reason', cell: (a) => (a.reason ? html`<${Foreign} text=${a.reason} mono=${false} />` : ''), csv: (a) => a.reason},
];

function Audit() {
  const audit = useGet('v1/reports/audit?limit=20', {every: 3});
  const rows = (audit.data && audit.data.items) || [];
  return html`<${Panel} title="Audit log" note=${zoneName()} actions=${rows.length > 0 && html`<${TableCsv} name="Audit log" columns=${kAudit} rows=${rows} />`}>
    ${!audit.data ? html`<${Missing} answer=${audit} what="The audit log" />` : rows.length === 0 ? html`<p class="muted">Nothing is recorded yet. With tokens, every change is recorded here with who made it and why.</p>` :
      html`<${Table} caption="Audit log" rows=${rows} columns=${kAudit} />${audit.data.next_cursor && html`<div class="more"><a class="button small" href=${link('reports', {report: 'audit', range: 'year'})}>All of it</a></div>`}`}<//>`;
}

export function Cluster() {
  const nodes = useGet('v1/nodes?limit=1000'), shards = useGet('v1/shards?limit=1000', {pages: kShardPages}), ready = useGet('readyz'), peers = useGet('v1/endpoints?limit=1000');
  const index = useMemo(() => new Map(((nodes.data && nodes.data.items) || []).map((n) => n.node).sort().map((name, i) => [name, i + 1])), [nodes.data]);
  return html`<${Title} text="Cluster" />
    <div class="columns"><div class="column"><${Panel} title="Nodes"><${Nodes} nodes=${nodes} index=${index} /><//><${Panel} title="Databases"><${Databases} shards=${shards} ready=${ready} /><//></div>
      <div class="column"><${Panel} title="Shards" note=${shards.data ? `${number(shards.data.items.length)} of them` : ' '}><${ShardMap} shards=${shards} index=${index} /><//><${Panel} title="Moves"><${Moves} shards=${shards} /><//></div></div>
    <${Peers} peers=${peers} />
    <${Audit} />`;
}

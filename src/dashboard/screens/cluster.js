// Nodes, shards, databases, and who changed what.
import {html, useMemo} from '../vendor/preact.js';
import {length, number, zoneName} from '../format.js';
import {useGet} from '../rest.js';
import {isFine, remedy} from './overview.js';
import {Badge, Foreign, Good, Missed, Missing, Panel, Stale, Table, Time, Title} from '../ui.js';

const kStale = 10_000; // ms since the last scan: longer than any interval between two

function Nodes({nodes, index}) {
  if (!nodes.data) return html`<${Missing} answer=${nodes} what="The list of nodes" />`;
  return html`<${Stale} answer=${nodes} /><${Table} caption="Nodes" rows=${nodes.data.items} rowKey=${(n) => n.id} columns=${[
    {label: 'Node', cell: (n) => html`<${Foreign} text=${n.node} mono=${false} />`},
    {label: 'Mark', cell: (n) => index.get(n.node) ?? '–'},
    {label: 'State', cell: (n) => html`<${Badge} icon=${n.state === 'active' ? '✓' : n.state === 'draining' ? '↘' : '✕'} kind=${n.state === 'active' ? 'good' : n.state === 'draining' ? 'warn' : 'bad'}>${n.state}<//>`},
    {label: 'Shards', isNumber: true, cell: (n) => number(n.shards)},
    {label: 'Heartbeat', isNumber: true, cell: (n) => `${length(n.heartbeat_age_ms)} ago`},
    {label: 'Version', cell: (n) => n.version},
  ]} />`;
}

const isStale = (s) => s.node === null || (s.scanned_age_ms !== null && s.scanned_age_ms > kStale);

function ShardMap({shards, index}) {
  if (!shards.data) return html`<${Missing} answer=${shards} what="The list of shards" />`;
  const items = shards.data.items;
  return html`<${Stale} answer=${shards} /><${Missed} data=${shards.data} />
    <p class="muted">Number of the shard, and below it the mark of the node that scans it. Hatched: scanned by none, or not for ${length(kStale)}. Double line: on its way to another database.</p>
    <ul class="shards" aria-label="Shards">${items.map((s) => {
      const mark = s.node === null ? '–' : index.get(s.node) ?? '?';
      const text = `Shard ${s.shard}: ${s.node === null ? 'scanned by none' : `${s.node}, scanned ${length(s.scanned_age_ms)} ago`}, in ${s.database}, ${number(s.pending_due_soon)} due soon${s.move ? `, ${s.move.state} to ${s.move.to}` : ''}`;
      return html`<li class=${isStale(s) ? 'none' : `n${((index.get(s.node) || 1) - 1) % 8}${s.move ? ' moving' : ''}`} title=${text}><span class="visually-hidden">${text}</span><span aria-hidden="true">${s.shard}<small>${mark}</small></span></li>`;
    })}</ul>`;
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
      {label: 'Database', cell: (r) => r.name || 'home'},
      {label: 'State', cell: (r) => html`<${Good} is=${!missing.includes(r.name) && !shards.error} yes="answers" no="away" />`},
      {label: 'Shards', isNumber: true, cell: (r) => number(r.shards)},
      {label: 'Due within 5 s', isNumber: true, cell: (r) => number(r.dueSoon)},
      {label: 'Moves', isNumber: true, cell: (r) => number(r.moves)},
    ]} />`}
    <ul class="list">${Object.entries((ready.data && ready.data.checks) || {}).map(([name, state]) => html`<li>${isFine(state) ? html`<${Badge} icon="✓" kind="good">${name}${state === 'ok' ? '' : `: ${state}`}<//>` :
      html`<div class="note bad"><span aria-hidden="true">✕</span> <span class="body"><strong>${name}: ${state}.</strong> ${remedy(`${name} ${state}`)}</span></div>`}</li>`)}
      ${((ready.data && ready.data.warnings) || []).map((text) => html`<li class="note warn"><span aria-hidden="true">!</span> <span class="body">${text} ${remedy(text)}</span></li>`)}</ul>`;
}

function Moves({shards}) {
  if (!shards.data) return html`<${Missing} answer=${shards} what="The list of moves" />`;
  const moving = ((shards.data && shards.data.items) || []).filter((s) => s.move);
  if (moving.length === 0) return html`<p class="muted">No shard is on its way. <code>tocsin shards move</code> starts a move.</p>`;
  return html`<${Table} caption="Moves" rows=${moving} rowKey=${(s) => s.shard} columns=${[
    {label: 'Shard', isNumber: true, cell: (s) => s.shard}, {label: 'From', cell: (s) => s.database}, {label: 'To', cell: (s) => s.move.to}, {label: 'State', cell: (s) => s.move.state}]} />`;
}

function Audit() {
  const audit = useGet('v1/reports/audit?limit=50', {every: 3});
  if (!audit.data) return html`<${Missing} answer=${audit} what="The audit log" />`;
  if (audit.data.items.length === 0) return html`<p class="muted">Nothing is recorded yet. Changes of types and changes to many jobs are recorded here with who made them.</p>`;
  return html`<${Table} caption="Audit log" rows=${audit.data.items} columns=${[
    {label: `When (${zoneName()})`, cell: (a) => html`<span class="nowrap"><${Time} at=${a.at} /></span>`},
    {label: 'Who', cell: (a) => html`<${Foreign} text=${a.actor} mono=${false} /> <span class="muted">${a.role}</span>`},
    {label: 'From', cell: (a) => a.address || '–'},
    {label: 'Did', cell: (a) => html`${a.action} <${Foreign} text=${a.target || ''} />`},
    {label: 'Filter', cell: (a) => (a.filter ? html`<${Foreign} text=${typeof a.filter === 'string' ? a.filter : JSON.stringify(a.filter)} clip />` : '–')},
    {label: 'Matched', isNumber: true, cell: (a) => number(a.matched)},
    {label: 'Changed', isNumber: true, cell: (a) => number(a.changed)},
    {label: 'Reason', cell: (a) => (a.reason ? html`<${Foreign} text=${a.reason} mono=${false} />` : '–')},
  ]} />`;
}

export function Cluster() {
  const nodes = useGet('v1/nodes?limit=1000'), shards = useGet('v1/shards?limit=1000'), ready = useGet('readyz');
  const index = useMemo(() => new Map(((nodes.data && nodes.data.items) || []).map((n) => n.node).sort().map((name, i) => [name, i + 1])), [nodes.data]);
  return html`<${Title} text="Cluster" />
    <${Panel} title="Nodes"><${Nodes} nodes=${nodes} index=${index} /><//>
    <${Panel} title="Shards"><${ShardMap} shards=${shards} index=${index} /><//>
    <div class="columns"><${Panel} title="Databases"><${Databases} shards=${shards} ready=${ready} /><//><${Panel} title="Moves"><${Moves} shards=${shards} /><//></div>
    <${Panel} title="Audit log"><${Audit} /><//>`;
}

// Is everything going to fire on time, and if not, what helps?
import {html, useMemo, useState} from '../vendor/preact.js';
import {Bars, Lines, Spark} from '../charts.js';
import {away, capped, inZone, length, moment, number, roughly, sentenceCase, short, zoneName} from '../format.js';
import {useGet} from '../rest.js';
import {link, useShared} from '../state.js';
import {Count, Empty, Missed, Missing, Panel, Segments, Stale, Table, Tiles, Title, TypeLink, Verdict} from '../ui.js';
import {capacityOf, courses, seriesOf, useByType, useCapacity, useHorizon, useHours} from '../reports.js';

// What an operator does about a failing check or a warning, by its words.
const kRemedies = [
  [/pooler that shares sessions/i, 'Give the role of the node this setting in the database: ALTER ROLE … SET. See docs/operations.md.'],
  [/superuser/i, 'Give the node a role of its own: scripts/roles.sql makes one.'],
  [/fsync|synchronous/i, 'Switch it on in the database: without it a crash may lose acknowledged jobs.'],
  [/not listening|notif/i, 'A pooler between the node and the database blocks notifications: give the node a direct connection, or accept that some jobs start up to a second late.'],
  [/schema|migrat/i, 'Run tocsin migrate with this version.'],
  [/clock/i, 'Check the time service of the node and of the database host.'],
  [/draining/i, 'The node is shutting down; others take its shards.'],
  [/does not answer|connect|unavailable|^database/i, 'Start the database or repair the connection to it. Jobs of its shards wait, none is lost; they fire when it answers again.'],
  [/shard|own|membership/i, 'Another node takes over within the heartbeat time-out. If none does, start one.'],
];
export const remedy = (text) => (kRemedies.find(([pattern]) => pattern.test(text)) || [])[1] || '';
/** What helps against each check of /readyz that is not fine: [[what, what helps]]. */
export function troublesOf(checks) {
  const bad = Object.entries(checks || {}).filter(([, state]) => !isFine(state));
  const isDatabaseDown = bad.some(([name]) => name.startsWith('database'));
  return bad.map(([name, state]) => {
    const followsFromIt = isDatabaseDown && /^(membership|shards|notifications)/.test(name);
    return [sentence(`${name}: ${state}`), followsFromIt ? 'It follows from the database.' : remedy(`${name} ${state}`)];
  });
}

/** Of a check of /readyz: nothing is wrong. */
export const isFine = (state) => state === 'ok' || state.startsWith('owns ');

// The types that reasons name lead to their screens; long waits read as such.
function reasonText(text) {
  const said = inZone(text).replace(/\bfor (\d+) s\b/g, (_, s) => `for ${length(s * 1000)}`);
  const named = /^([^ ]+) ((?:misses|is) .*)$/.exec(said);
  return named ? html`<a class="quiet-link" href=${link('types', {type: named[1]})}>${named[1]}</a> ${named[2]}` : said;
}
const sentence = (text) => (/[.!?]$/.test(text) ? text : text + '.');
const isToRemedy = (text) => (/^docs\//.test(text) ? '' : text);

/** What is wrong now: [[what, what helps]]. */
function troubles(ready, overview) {
  const found = troublesOf(ready && ready.checks);
  for (const reason of (overview && overview.reasons) || [])
    if (reason.code !== 'not_ready') found.push([reasonText(reason.text), String(reason.remedy).replace(/\b(\d+) ms\b/g, (_, ms) => length(ms))]);
  return found;
}

const kWaits = {paused: 'paused', max_running: 'its limit max_running', rate_per_s: 'its rate', catch_up: 'its catch-up rate', consumers: 'its consumers', workers: 'its handler'};

function verdict({overview, ready, shared, found}) {
  if (shared.lost) return {kind: 'quiet', text: 'Unknown: this node does not answer.', more: 'Other nodes take over its jobs, if there are any.'};
  if (ready && ready.status === 'not ready') return {kind: 'bad', text: 'This node cannot do its work.', points: found};
  if (!overview) return {kind: 'quiet', text: 'Reading…', more: ' '};
  const {due, totals} = overview;
  const ahead = `${number(due.next_hour ?? due.next_minute)} due in the next ${due.next_hour === null ? 'minute' : 'hour'}, ${number(totals.pending)} pending in all, ${number(totals.running)} running.`;
  if (overview.verdict === 'down' || (ready && ready.status === 'degraded')) return {kind: 'bad', text: 'A part of the jobs cannot fire now.', more: ahead, points: found};
  if (overview.verdict === 'ok')
    return {kind: 'good', text: due.now > 0 ? `No type is behind; ${capped(due.now, due.is_now_exact)} ${due.now === 1 ? 'job waits' : 'jobs wait'} past ${due.now === 1 ? 'its' : 'their'} time.` : 'All on time.', more: ahead};
  return {kind: 'warn', text: `${found.length === 1 ? 'One problem needs' : `${number(found.length)} problems need`} attention.`, more: ahead, points: found};
}

function Horizon() {
  const [width, setWidth] = useState('hour');
  const {answer, items, names, countedAt, isCut} = useHorizon(width, '');
  const capacity = useCapacity();
  return html`<${Panel} title="Horizon: what is due when" note=${countedAt ? `counted ${away(countedAt)}${isCut ? '; the far end is left out: too many types' : ''}` : ' '} actions=${html`<${Segments} label="Width" value=${width} onChange=${setWidth}
      options=${[['minute', '2 hours'], ['hour', '7 days'], ['day', '90 days']]} />`}>
    ${!answer.data ? html`<${Missing} answer=${answer} what="The horizon" tall />` : html`<${Stale} answer=${answer} />
      ${items.length === 0 ? html`<p class="reading tall">Nothing is due in this time, as far as it has been counted.</p>` :
        html`<${Bars} caption=${`Jobs due by ${width}`} items=${items} names=${names} width=${width} limit=${capacityOf(width, capacity)} />`}`}
  <//>`;
}

/** `isOfAll`: of all types; percentiles are then those of the slowest one. */
export function Charts({hours, target, isOfAll}) {
  const {times, lateness, throughput} = useMemo(() => {
    const all = seriesOf(hours.data);
    if (target && target < Infinity) all.lateness.push({label: 'target', values: all.times.map(() => target)});
    return all;
  }, [hours.data, target]);
  const body = (chart) => (!hours.data ? html`<${Missing} answer=${hours} what="The report by hour" tall />` :
    times.length < 2 ? html`<p class="reading tall">A line begins when two hours of history are there.</p>` : chart);
  const span = hours.isCut ? `${hours.span}: too many types for more` : 'two days';
  return html`<${Panel} title="Lateness of first starts" note=${`by hour, ${span}${isOfAll ? ', slowest type' : ''}`}><div key="late">${body(html`<${Lines} caption="Lateness by hour" times=${times} series=${lateness} unit="ms" isLog />`)}</div><//>
    <${Panel} title="Throughput" note=${`by hour, ${span}`}><div key="jobs">${body(html`<${Lines} caption="Jobs by hour" times=${times} series=${throughput} unit="jobs" />`)}</div><//>`;
}

function Worst({overview, hours}) {
  const course = useMemo(() => courses(hours.data, 48), [hours.data]);
  if (!overview.data) return html`<${Missing} answer=${overview} what="The overview" tall />`;
  const paused = new Set(overview.data.paused.map((each) => each.biz_type));
  const notes = (r) => [r.due > 0 && (paused.has(r.biz_type) ? 'paused' : r.waits_for && `waits for ${kWaits[r.waits_for] || r.waits_for}`), r.retried > 0 && `${number(r.retried)} attempts failed`].filter(Boolean).join(', ');
  return html`<div class="worst"><${Table} caption="Types that need attention first" rows=${overview.data.worst} rowKey=${(r) => r.biz_type} columns=${[
    {label: 'Type', cell: (r) => html`<${TypeLink} name=${r.biz_type} /><span class="sub">${notes(r)}</span>`},
    {label: 'Overdue', isNumber: true, cell: (r) => html`${r.is_due_exact === false ? html`<span title=${capped(r.due, false)}>${number(r.due)}+</span>` : html`<${Count} n=${r.due} />`}${r.due > 0 && html`<span class="sub">${roughly(r.oldest_age_ms)}</span>`}`},
    {label: 'p99', isNumber: true, holds: 'length', cell: (r) => html`<span class=${r.target_ms !== null && r.p99_ms > r.target_ms ? 'is-bad' : ''}>${length(r.p99_ms)}</span>${r.target_ms !== null && html`<span class="sub">target ${length(r.target_ms)}</span>`}`},
    {label: 'Died', isNumber: true, cell: (r) => (r.dead ? html`<a href=${link('dead', {type: r.biz_type})}>${number(r.dead)}</a>` : html`<${Count} n=${0} />`)},
    {label: hours.isCut ? sentenceCase(hours.span) : '2 days', isNumber: true, cell: (r) => html`<${Spark} values=${course.get(r.biz_type)?.done} text=${`Done by hour in ${hours.isCut ? hours.span : 'two days'}: ${number(course.get(r.biz_type)?.sum ?? 0)}`} />`},
  ]} /></div>`;
}

const kRecent = html`<small title="of the last 10 to 25 minutes">15 min</small>`; // what lateness and throughput are of

const tiles = (data) => {
  const late = data && data.lateness_ms, due = data && data.due, totals = data && data.totals;
  return [
    [html`Lateness p99 ${kRecent}`, late && late.n ? roughly(late.p99) : '–', !data ? ' ' : late.n ? `p50 ${length(late.p50)}` : 'nothing started lately'],
    ['Due in the next hour', due ? short(due.next_hour) : '–', !due ? ' ' : due.next_hour === null ? 'not counted yet' : `${number(due.next_minute)}${due.is_capped ? ' or more' : ''} in the next minute`],
    ['Overdue', due ? `${short(due.now)}${due.is_now_exact === false ? '+' : ''}` : '–', 'past their time'],
    ['Running', totals ? short(totals.running) : '–', 'attempts'],
    [html`Done ${kRecent}`, data ? html`${data.throughput.done_per_s.toFixed(1)} <small>/s</small>` : '–', data ? `${data.throughput.created_per_s.toFixed(1)} /s created` : ' '],
    ['Dead now', totals ? (totals.dead ? html`<a href=${link('dead')}>${short(totals.dead)}</a>` : '0') : '–', totals ? `${short(totals.done)} done in history` : ' '],
  ];
};

function Paused({overview}) {
  const rows = (overview && overview.paused) || [];
  if (rows.length === 0) return null;
  return html`<${Panel} title="Paused types"><ul class="list">${rows.map((each) => html`<li><${TypeLink} name=${each.biz_type} /> <span class="muted">${each.until ? `until ${moment(each.until)} ${zoneName()}` : 'until it is resumed'}; ${each.due > 0 ? `${capped(each.due, each.is_exact)} due ${each.due === 1 ? 'job waits' : 'jobs wait'} for it` : 'no job is due yet'}.</span></li>`)}</ul><//>`;
}

const Warnings = ({texts}) => texts.length > 0 && html`<${Panel} title="Warnings"><ul class="list">${texts.map(([text, help]) =>
  html`<li class="note warn"><span class="body"><strong>${sentence(text)}</strong> ${help}</span></li>`)}</ul><//>`;

export function Overview() {
  const shared = useShared();
  const overview = useGet('v1/overview'), ready = useGet('readyz'), slo = useByType('slo', 12);
  const hours = useHours(48);
  const found = troubles(ready.data, overview.data);
  const warnings = ((overview.data && overview.data.warnings) || []).map((each) => [each.text, remedy(each.text) || isToRemedy(each.remedy)]);
  const strictest = Math.min(Infinity, ...((slo.data && slo.data.items) || []).map((row) => Number(row.target_ms)));
  const isEmpty = overview.data && Object.values(overview.data.totals).every((n) => n === 0);
  return html`<${Title} text="Overview"><span class="grow"></span><span class="muted small-text">${overview.data ? `${overview.data.node}, ${moment(overview.data.at)} ${zoneName()}` : ''}</span><//>
    <${Verdict} ...${verdict({overview: overview.data, ready: ready.data, shared, found})} />
    <${Stale} answer=${overview} /><${Missed} data=${overview.data} />
    <${Tiles} items=${tiles(overview.data)} />
    ${isEmpty && html`<${Panel} title="Your first job"><${Empty} method="PUT" path="v1/types/demo" body=${{handler: {kind: 'noop'}}}>There is no job yet. First a type, which says what happens at the deadline:<//>
      <${Empty} method="POST" path="v1/jobs" body=${{biz_type: 'demo', biz_id: 'order-42', delay_ms: 60000}}>Then a job, due in a minute:<//><//>`}
    ${!isEmpty && html`<div class="columns even"><${Charts} hours=${hours} target=${strictest} isOfAll /></div>
    <div class="columns lead"><${Horizon} /><div class="column">
      <${Panel} title="Types that need attention first" note="last 15 minutes"><${Worst} overview=${overview} hours=${hours} /><//>
      <${Paused} overview=${overview.data} /></div></div>`}
    <${Warnings} texts=${warnings} />`;
}

// Is everything going to fire on time, and if not, what helps?
import {html, useMemo, useState} from '../vendor/preact.js';
import {Bars, Lines} from '../charts.js';
import {moment, number, percent, roughly, short, zoneName} from '../format.js';
import {useGet} from '../rest.js';
import {link, useShared} from '../state.js';
import {Empty, Good, Missed, Missing, Panel, Segments, Stale, Table, Title, TypeLink} from '../ui.js';
import {seriesOf, useHorizon, useHours} from '../reports.js';

// What an operator does about a failing check, by the words of its name or state.
const kRemedies = [
  [/database|connect|answer/i, 'Start the database or mend the way to it. Jobs of its shards wait, none is lost; they fire when it is back.'],
  [/schema|migrat/i, 'Run tocsin migrate with this version.'],
  [/shard|own/i, 'Another node takes over within the heartbeat time-out. If none does, start one.'],
  [/not listening/i, 'A pooler in between keeps notifications away: give the node a direct connection, or accept up to a second.'],
  [/draining/i, 'The node is about to end; others take its shards.'],
  [/clock/i, 'Check the time service of the node and of the database host.'],
  [/fsync|synchronous/i, 'Switch it on in the database: without it a crash may lose acknowledged jobs.'],
];
export const remedy = (text) => (kRemedies.find(([pattern]) => pattern.test(text)) || [])[1] || '';

/** Of a check of /readyz: nothing is wrong. */
export const isFine = (state) => state === 'ok' || state.startsWith('owns ');

function troubles(ready, types) {
  const found = [];
  for (const [name, state] of Object.entries((ready && ready.checks) || {}))
    if (!isFine(state)) found.push({kind: 'bad', text: `${name}: ${state}.`, remedy: remedy(`${name} ${state}`)});
  for (const text of (ready && ready.warnings) || []) found.push({kind: 'warn', text, remedy: remedy(text)});
  for (const type of (types && types.items) || [])
    if (type.paused) found.push({kind: 'warn', text: `The type ${type.name} is paused${type.paused_until ? ` until ${moment(type.paused_until)} ${zoneName()}` : ''}: its jobs wait.`, remedy: 'Resume it under Types when its handler is ready.'});
  return found;
}

const kOnItsWay = 5000; // ms: what has been due for less is about to start

function verdict({stats, ready, lost, slo, backlog}) {
  if (lost) return ['quiet', '?', 'Unknown: this node does not answer.', 'Its jobs are taken over by other nodes, if there are any.'];
  if (ready && ready.status === 'not ready') return ['bad', '✕', 'This node cannot do its work.', 'See the warnings below for what helps.'];
  if (!stats) return ['quiet', '…', 'Reading…', ' '];
  const oldest = backlog && Math.max(0, ...backlog.items.map((row) => Number(row.oldest_age_ms)));
  const overdue = backlog && oldest < kOnItsWay ? 0 : stats.backlog.overdue, pending = stats.totals.pending;
  const waiting = `${number(pending)} pending, ${number(stats.totals.running)} running.`;
  if (ready && ready.status === 'degraded') return ['warn', '!', 'A part of the jobs cannot fire now.', waiting];
  if (overdue > 0)
    return ['warn', '!', `${stats.backlog.is_capped ? 'More than ' : ''}${number(overdue)} ${overdue === 1 ? 'job is' : 'jobs are'} overdue.`, `${backlog ? `The oldest for ${roughly(oldest)}. ` : ''}They may be paused, limited, or on their way. ${waiting}`];
  const missed = ((slo && slo.items) || []).filter((s) => s.is_met === false);
  if (missed.length > 0) return ['warn', '!', `${missed.length} ${missed.length === 1 ? 'type misses its target' : 'types miss their targets'}.`, `Nothing is overdue now. ${waiting}`];
  return ['good', '✓', 'All on time.', `Nothing waits beyond its deadline. ${waiting}`];
}

const Tile = ({label, value, note}) => html`<div class="tile"><dt>${label}</dt><dd>${value}</dd><dd>${note || ' '}</dd></div>`;

function Horizon({hours}) {
  const [width, setWidth] = useState('hour');
  const {answer, items} = useHorizon(width, '');
  const busiest = useMemo(() => Math.max(0, ...seriesOf(hours.data).throughput[1].values), [hours.data]);
  return html`<${Panel} title="Horizon: what is due when" note=${busiest > 0 ? `The busiest hour of the last two days did ${number(busiest)}.` : ''} actions=${html`<${Segments} label="Width" value=${width} onChange=${setWidth}
      options=${[['minute', '2 hours'], ['hour', '7 days'], ['day', '90 days']]} />`}>
    ${!answer.data ? html`<${Missing} answer=${answer} what="The horizon" />` : html`<${Stale} answer=${answer} />
      ${items.length === 0 ? html`<p class="muted">Nothing is due in this time, as far as it has been counted.</p>` :
        html`<${Bars} caption=${`Jobs due by ${width}`} items=${items} width=${width} />`}`}
  <//>`;
}

function Charts({hours, slo}) {
  const strictest = Math.min(Infinity, ...((slo && slo.items) || []).map((row) => Number(row.target_ms)));
  const {times, lateness, throughput} = useMemo(() => {
    const all = seriesOf(hours.data);
    if (strictest < Infinity) all.lateness.push({label: 'strictest target', values: all.times.map(() => strictest)});
    return all;
  }, [hours.data, strictest]);
  if (!hours.data) return html`<${Panel} title="The last two days"><${Missing} answer=${hours} what="The report by hour" /><//>`;
  if (times.length < 2) return html`<${Panel} title="The last two days"><p class="muted">Lateness and throughput are drawn once two hours of history are there.</p><//>`;
  return html`
    <${Panel} title="Lateness of first starts, by hour"><${Lines} caption="Lateness by hour" times=${times} series=${lateness} unit="ms" isLog /><//>
    <${Panel} title="Throughput, by hour"><${Lines} caption="Jobs by hour" times=${times} series=${throughput} unit="jobs" /><//>`;
}

function Worst({stats, slo, backlog}) {
  const met = new Map(((slo && slo.items) || []).map((s) => [s.biz_type, s]));
  const due = new Map(((backlog && backlog.items) || []).map((b) => [b.biz_type, b]));
  const rows = stats.items.map((s) => ({...s, slo: met.get(s.biz_type), due: due.get(s.biz_type)}));
  const badness = (r) => (r.slo && r.slo.is_met === false ? 1e12 : 0) + 1000 * (r.due ? Number(r.due.due) : 0) + r.dead;
  rows.sort((a, b) => badness(b) - badness(a) || b.pending - a.pending);
  return html`<${Table} caption="Types that need a look first" rows=${rows.slice(0, 5)} rowKey=${(r) => r.biz_type} columns=${[
    {label: 'Type', cell: (r) => html`<${TypeLink} name=${r.biz_type} />`},
    {label: 'Target', cell: (r) => (r.slo && typeof r.slo.is_met === 'boolean' ? html`<${Good} is=${r.slo.is_met} yes=${percent(r.slo.share)} no=${percent(r.slo.share)} />` : '–')},
    {label: 'Overdue', isNumber: true, cell: (r) => (r.due ? number(r.due.due) : '–')},
    {label: 'Pending', isNumber: true, cell: (r) => number(r.pending)},
    {label: 'Dead', isNumber: true, cell: (r) => (r.dead ? html`<a href=${link('dead', {type: r.biz_type})}>${number(r.dead)}</a>` : '0')},
  ]} />`;
}

export function Overview() {
  const shared = useShared();
  const stats = useGet('v1/stats'), ready = useGet('readyz'), types = useGet('v1/types?limit=1000', {every: 3});
  const slo = useGet('v1/reports/slo', {every: 12}), backlog = useGet('v1/reports/backlog', {every: 2});
  const hours = useHours(48);
  const [kind, icon, text, more] = verdict({stats: stats.data, ready: ready.data, lost: shared.lost, slo: slo.data, backlog: backlog.data});
  const found = troubles(ready.data, types.data);
  const late = stats.data && stats.data.lateness_ms;
  const isEmpty = stats.data && Object.values(stats.data.totals).every((n) => n === 0);
  return html`<${Title} text="Overview" />
    <div class=${'verdict ' + kind} role="status"><span class="icon" aria-hidden="true">${icon}</span><div><strong>${text}</strong><p>${more}</p></div></div>
    <${Stale} answer=${stats} /><${Missed} data=${stats.data} />
    <dl class="tiles">
      <${Tile} label="Lateness p99" value=${late && late.n ? roughly(late.p99) : '–'} note=${late && late.n ? `p50 ${roughly(late.p50)}, max ${roughly(late.max)}` : stats.data ? 'nothing started lately' : 'unknown'} />
      <${Tile} label="Pending" value=${short(stats.data?.totals.pending)} note="jobs" />
      <${Tile} label="Overdue" value=${short(stats.data?.backlog.overdue)} note=${stats.data?.backlog.is_capped ? 'or more' : 'jobs'} />
      <${Tile} label="Running" value=${short(stats.data?.totals.running)} note="jobs" />
      <${Tile} label="Done" value=${short(stats.data?.totals.done)} note="kept in history" />
      <${Tile} label="Dead" value=${short(stats.data?.totals.dead)} note=${html`<a href=${link('dead')}>dead letters</a>`} />
    </dl>
    ${!stats.data && stats.error && html`<${Panel} title="Counts"><${Missing} answer=${stats} what="The counts" /><//>`}
    <${Panel} title="Warnings">${found.length === 0 ? html`<p class="muted">${ready.data ? 'None.' : 'Reading…'}</p>` : html`<ul class="list">${found.map((each) =>
      html`<li class=${'note ' + each.kind}><span aria-hidden="true">${each.kind === 'bad' ? '✕' : '!'}</span> <span class="body"><strong>${each.text}</strong> ${each.remedy}</span></li>`)}</ul>`}<//>
    ${isEmpty ? html`<${Panel} title="Your first job"><${Empty} method="PUT" path="v1/types/demo" body=${{handler: {kind: 'noop'}}}>There is no job yet. First a type, which says what happens at the deadline:<//>
      <${Empty} method="POST" path="v1/jobs" body=${{biz_type: 'demo', biz_id: 'order-42', delay_ms: 60000}}>Then a job, due in a minute:<//><//>` : html`
    <div class="columns"><${Charts} hours=${hours} slo=${slo.data} /></div>
    <div class="columns"><${Horizon} hours=${hours} />
      <${Panel} title="Types that need a look first">${stats.data ? html`<${Worst} stats=${stats.data} slo=${slo.data} backlog=${backlog.data} />` : html`<${Missing} answer=${stats} what="The counts" />`}<//></div>`}`;
}

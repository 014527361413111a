// Reports as the screens need them.
import {useMemo} from './vendor/preact.js';
import {query, useGet} from './rest.js';

const kHour = 3_600_000;
const kPages = 12; // of 1,000 rows: 30 types have 11,000 slots ahead
const kWidths = {minute: 60_000, hour: kHour, day: 24 * kHour};

/** 'minute', 'hour' or 'day', however the width of a slot is written. */
export function widthName(width) {
  const text = String(width);
  if (/day|^(1 )?d|24:00|86400/.test(text)) return 'day';
  if (/hour|^(1 )?h|^0?1:00|3600/.test(text)) return 'hour';
  return 'minute';
}

/** The slots of `width` of all types, or of one, from now on: [{at, n, low, high, isExact}] in order, none left out. */
export function useHorizon(width, type) {
  const answer = useGet('v1/reports/horizon' + query({type, limit: '1000'}), {every: 6, pages: kPages});
  const items = useMemo(() => slotsOf(answer.data, width), [answer.data, width]);
  return {answer, items};
}

function slotsOf(data, width) {
  const sums = new Map();
  for (const row of (data && data.items) || []) {
    if (widthName(row.width) !== width) continue;
    const at = Number(new Date(row.slot));
    const sum = sums.get(at) || {at: new Date(at), n: 0, low: 0, high: 0, isExact: true};
    sum.n += Number(row.n);
    sum.low += Number(row.low ?? row.n);
    sum.high += Number(row.high ?? row.n);
    sum.isExact = sum.isExact && row.is_exact !== false;
    sums.set(at, sum);
  }
  if (sums.size === 0) return [];
  const all = [...sums.keys()];
  const first = Math.min(...all), last = Math.max(...all), step = kWidths[width], filled = [];
  for (let at = first; at <= last && filled.length < 400; at += step)
    filled.push(sums.get(at) || {at: new Date(at), n: 0, low: 0, high: 0, isExact: true});
  return filled;
}

/** The report by hour of the last `hours`. The start moves once an hour, so that the address stays the same. */
export function useHours(hours, type = '') {
  const from = new Date(Math.floor(Date.now() / kHour) * kHour - hours * kHour).toISOString();
  return useGet('v1/reports/hour' + query({type, from, limit: '1000'}), {every: 6, pages: kPages});
}

/** Lines for the charts, all types added up; percentiles: the worst type's. */
export function seriesOf(data) {
  const slots = new Map();
  for (const row of (data && data.items) || []) {
    const at = Number(new Date(row.slot)) / 1000;
    const sum = slots.get(at) || {created: 0, done: 0, dead: 0, p50: null, p99: null};
    sum.created += Number(row.created);
    sum.done += Number(row.done);
    sum.dead += Number(row.dead);
    for (const [name, value] of [['p50', row.p50_ms], ['p99', row.p99_ms]])
      if (value !== null && value !== undefined) sum[name] = Math.max(sum[name] ?? 0.01, Number(value)); // a logarithmic scale has no zero
    slots.set(at, sum);
  }
  const times = [...slots.keys()].sort((a, b) => a - b);
  const line = (label, name) => ({label, values: times.map((at) => slots.get(at)[name])});
  return {times, lateness: [line('p50', 'p50'), line('p99 of the slowest type', 'p99')],
          throughput: [line('created', 'created'), line('done', 'done'), line('dead', 'dead')]};
}

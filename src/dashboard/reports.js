// Reports as the screens need them.
import {html, useMemo} from './vendor/preact.js';
import {number} from './format.js';
import {query, useGet} from './rest.js';

const kHour = 3_600_000;
const kPages = 12; // of 1,000 rows: 70 types with each hour of a week
const kWidths = {minute: 60_000, hour: kHour, day: 24 * kHour};
const kSlow = 12; // intervals between two reads of long lists: the node counts the horizon once a minute
const kParts = 5; // types with a colour of their own
const kTypePages = 10; // of 1,000 types

/** The types by name, the first 10,000 of them. */
export const useTypes = (every = kSlow) => useGet('v1/types?limit=1000', {every, pages: kTypePages});

/** A report that has one row a type: of all types, or of one. */
export const useByType = (name, every, type = '') => useGet(`v1/reports/${name}` + query({type, limit: '1000'}), {every, pages: kTypePages});

/** The choice of a type or of all; a chosen one that is not in the list, because it was removed or is too far behind, stays chosen. */
export function TypeSelect({value, onChange}) {
  const types = useTypes(), names = ((types.data && types.data.items) || []).map((type) => type.name);
  const isCut = Boolean(types.data && types.data.next_cursor);
  return html`<select class="types" value=${value} onChange=${(event) => onChange(event.target.value)}><option value="">all</option>
    ${names.map((name) => html`<option value=${name}>${name}</option>`)}
    ${value && !names.includes(value) && html`<option value=${value}>${value}</option>`}
    ${isCut && html`<option disabled>the first ${number(names.length)} types; there are more</option>`}</select>`;
}

const isCut = (answer) => Boolean(answer.data && answer.data.next_cursor);

/**
 * The slots of `width` of all types, or of one, from now on: {items: [{at, n, low, high, isExact, parts}], names,
 * countedAt, isCut}. Each type is counted about once a minute; countedAt is the time of the oldest count, or ''. isCut:
 * there are more rows than are read, so the far end is left out.
 */
export function useHorizon(width, type) {
  const answer = useGet('v1/reports/horizon' + query({type, width, limit: '1000'}), {every: kSlow, pages: kPages});
  const slots = useMemo(() => slotsOf(answer.data, width), [answer.data, width]);
  return {answer, ...slots, isCut: isCut(answer)};
}

// In order, none left out; the types with most due have parts of their own, the others one together.
function slotsOf(data, width) {
  const rows = ((data && data.items) || []).filter((row) => row.width === width);
  const byType = new Map();
  for (const row of rows) byType.set(row.biz_type, (byType.get(row.biz_type) || 0) + Number(row.n));
  const order = [...byType].sort((a, b) => b[1] - a[1]).map(([name]) => name);
  const names = order.length > kParts + 1 ? [...order.slice(0, kParts), `${order.length - kParts} others`] : order;
  const part = new Map(order.map((name, i) => [name, Math.min(i, names.length - 1)]));
  const empty = (at) => ({at: new Date(at), n: 0, low: 0, high: 0, isExact: true, parts: names.map(() => 0)});
  const sums = new Map();
  const countedAt = rows.reduce((oldest, row) => (!oldest || row.counted_at < oldest ? row.counted_at : oldest), '');
  for (const row of rows) {
    const at = Number(new Date(row.slot));
    const sum = sums.get(at) || empty(at);
    sum.n += Number(row.n);
    sum.low += Number(row.low);
    sum.high += Number(row.high);
    sum.isExact = sum.isExact && row.is_exact;
    sum.parts[part.get(row.biz_type)] += Number(row.n);
    sums.set(at, sum);
  }
  if (sums.size === 0) return {items: [], names, countedAt};
  const all = [...sums.keys()];
  const last = Math.max(...all), step = kWidths[width], items = [];
  for (let at = Math.min(...all); at <= last && items.length < 400; at += step) items.push(sums.get(at) || empty(at));
  return {items, names, countedAt};
}

/**
 * The report by hour of the last `hours`. The start moves once an hour, so that the address stays the same. With many
 * types there are more rows than are read: isCut, and data has the newest hours alone, `span` says which.
 */
export function useHours(hours, type = '', every = kSlow) {
  const from = new Date(Math.floor(Date.now() / kHour) * kHour - hours * kHour).toISOString();
  const answer = useGet('v1/reports/hour' + query({type, from, limit: '1000'}), {every, pages: kPages});
  const data = useMemo(() => wholeHours(answer.data), [answer.data]);
  const n = data ? new Set(data.items.map((row) => row.slot)).size : 0;
  return {...answer, data, isCut: isCut(answer), span: isCut(answer) ? `the last ${n} hours` : ''};
}

// Of a report that is cut, the oldest hour lacks types.
function wholeHours(data) {
  if (!data || !data.next_cursor || data.items.length === 0) return data;
  const oldest = data.items[data.items.length - 1].slot;
  return {...data, items: data.items.filter((row) => row.slot !== oldest)};
}

/** Lines for the charts, all types added up; percentiles: the worst type's. An hour without a row is one of zeros. */
export function seriesOf(data) {
  const slots = new Map();
  const empty = () => ({created: 0, done: 0, dead: 0, p50: null, p99: null});
  for (const row of (data && data.items) || []) {
    const at = Number(new Date(row.slot)) / 1000;
    const sum = slots.get(at) || empty();
    sum.created += Number(row.created);
    sum.done += Number(row.done);
    sum.dead += Number(row.dead);
    for (const [name, value] of [['p50', row.p50_ms], ['p99', row.p99_ms]])
      if (value !== null && value !== undefined) sum[name] = Math.max(sum[name] ?? 0.01, Number(value)); // a logarithmic scale has no zero
    slots.set(at, sum);
  }
  const times = [];
  if (slots.size > 0)
    for (let at = Math.min(...slots.keys()); at <= Math.max(...slots.keys()); at += kHour / 1000) times.push(at);
  const line = (label, name) => ({label, values: times.map((at) => (slots.get(at) || empty())[name])});
  return {times, lateness: [line('p50', 'p50'), line('p99', 'p99')],
          throughput: [line('created', 'created'), line('done', 'done'), line('dead', 'dead')]};
}

/** By type: {done: [by hour], sum}. */
export function courses(data, hours) {
  const now = Math.floor(Date.now() / kHour), all = new Map();
  for (const row of (data && data.items) || []) {
    const course = all.get(row.biz_type) || {done: new Array(hours + 1).fill(0), sum: 0};
    const i = hours - (now - Math.floor(Number(new Date(row.slot)) / kHour));
    if (i >= 0 && i <= hours) course.done[i] += Number(row.done);
    course.sum += Number(row.done);
    all.set(row.biz_type, course);
  }
  return all;
}

/** The most jobs that were done in one hour of the last week, as {n, span}: what this installation has shown that it can do. */
export function useCapacity(type = '') {
  const week = useHours(7 * 24, type, 60);
  return useMemo(() => {
    const hours = new Map();
    for (const row of (week.data && week.data.items) || []) hours.set(row.slot, (hours.get(row.slot) || 0) + Number(row.done));
    return {n: Math.max(0, ...hours.values()), span: week.span || 'the last week'};
  }, [week.data, week.span]);
}

/** The same for slots of `width`, as the limit of a chart. */
export function capacityOf(width, {n: perHour, span}) {
  if (!perHour) return null;
  const n = width === 'minute' ? perHour / 60 : width === 'day' ? perHour * 24 : perHour;
  return {n, text: width === 'hour' ? `Shown capacity: ${number(perHour)} jobs done in the busiest hour of ${span}.` :
    `Shown capacity: about ${number(Math.round(n))} a ${width}, from the busiest hour of ${span} (${number(perHour)}).`};
}

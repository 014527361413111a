// How numbers, lengths of time and moments read.
import {state} from './state.js';

const kNumber = new Intl.NumberFormat('en-US');
const kShort = new Intl.NumberFormat('en-US', {notation: 'compact', maximumFractionDigits: 1});

export const sentenceCase = (text) => text[0].toUpperCase() + text.slice(1);
export const isNumber = (n) => n !== null && n !== undefined && n !== '' && !Number.isNaN(Number(n));
export const number = (n) => (isNumber(n) ? kNumber.format(Number(n)) : '–');
export const short = (n) => (isNumber(n) ? (Math.abs(n) < 10000 ? number(Math.round(n)) : kShort.format(n)) : '–');
/** A count that ended at its cap. */
export const capped = (n, isExact) => (isExact === false ? `more than ${number(n)}` : number(n));
/** Less than all is never shown as 100 %. */
export function percent(share, digits = 1) {
  if (!isNumber(share)) return '–';
  const scale = 10 ** digits, n = 100 * share;
  return `${(n < 100 ? Math.min(Math.round(n * scale), 100 * scale - 1) / scale : n).toFixed(digits)} %`;
}

/** "1.5 ms", "12 s", "3 h 20 min" */
export function length(ms) {
  if (!isNumber(ms)) return '–';
  const n = Math.abs(Number(ms)), sign = ms < 0 ? '−' : '';
  if (n < 1) return n === 0 ? '0 ms' : `${sign}${n.toFixed(2)} ms`;
  if (n < 1000) return `${sign}${n < 10 ? n.toFixed(1) : Math.round(n)} ms`;
  if (n < 59_500) return `${sign}${(n / 1000).toFixed(n < 9950 ? 1 : 0)} s`;
  if (n < 60_000) return `${sign}1 min`;
  const parts = [['d', 86_400_000], ['h', 3_600_000], ['min', 60_000], ['s', 1000]];
  const first = parts.findIndex(([, size]) => n >= size);
  const [unit, size] = parts[first], next = parts[first + 1];
  const whole = Math.floor(n / size), rest = next ? Math.floor((n % size) / next[1]) : 0;
  return `${sign}${whole} ${unit}${rest ? ` ${rest} ${next[0]}` : ''}`;
}

/** The same in its largest unit alone: "23 min" */
export const roughly = (ms) => length(ms).split(' ').slice(0, 2).join(' ');

export const zoneName = () => (state.zone === 'utc' ? 'UTC' : Intl.DateTimeFormat().resolvedOptions().timeZone || 'local');

function parts(at) {
  const utc = state.zone === 'utc';
  const two = (n) => String(n).padStart(2, '0');
  const get = (name) => (utc ? at['getUTC' + name]() : at['get' + name]());
  return {
    date: `${get('FullYear')}-${two(get('Month') + 1)}-${two(get('Date'))}`,
    time: `${two(get('Hours'))}:${two(get('Minutes'))}`,
    seconds: two(get('Seconds')),
    ms: String(at.getMilliseconds()).padStart(3, '0'),
    day: ['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat'][get('Day')],
    hour: get('Hours'),
  };
}

/** A moment in the zone that the reader chose; the zone is named in the frame and in every title. */
export function moment(text, {ms = false} = {}) {
  if (!text) return '–';
  const p = parts(new Date(text));
  return `${p.date} ${p.time}:${p.seconds}${ms ? '.' + p.ms : ''}`;
}
export const dayOf = (at) => parts(at).date;
export const weekday = (at) => parts(at).day;
export const hourOf = (at) => parts(at).hour;
export const clock = (at) => parts(at).time;
export const startOfDay = (at) => (state.zone === 'utc' ? new Date(Date.UTC(at.getUTCFullYear(), at.getUTCMonth(), at.getUTCDate())) :
                                                          new Date(at.getFullYear(), at.getMonth(), at.getDate()));
export const plusDays = (day, n) => {
  const next = new Date(day);
  if (state.zone === 'utc') next.setUTCDate(next.getUTCDate() + n);
  else next.setDate(next.getDate() + n);
  return next;
};

/** "in 5 min", "3 h ago" */
export function away(text, now = Date.now()) {
  if (!text) return '';
  const ms = new Date(text) - now;
  return Math.abs(ms) < 1000 ? 'now' : ms > 0 ? `in ${length(ms)}` : `${length(-ms)} ago`;
}

/** A sentence of the server with its times in the reader's zone. */
export const inZone = (text) => String(text ?? '').replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/g, (time) => `${moment(time)} ${zoneName()}`);

/** What <input type=datetime-local> holds, as RFC 3339 in the reader's zone; and back. */
export const fromInput = (text) => (!text ? '' : new Date(state.zone === 'utc' ? text + 'Z' : text).toISOString());
export const toInput = (text) => {
  if (!text || Number.isNaN(Number(new Date(text)))) return '';
  const p = parts(new Date(text));
  return `${p.date}T${p.time}:${p.seconds}`;
};

// What is coming, by hour and by day; every field leads to its jobs.
import {html, useMemo} from '../vendor/preact.js';
import {away, capped, clock, dayOf, hourOf, number, plusDays, sentenceCase, short, startOfDay, weekday, zoneName} from '../format.js';
import {go, link, useShared} from '../state.js';
import {TypeSelect, capacityOf, useByType, useCapacity, useHorizon} from '../reports.js';
import {Csv} from '../csv.js';
import {Field, Missed, Missing, Panel, Stale, Title} from '../ui.js';

const kDays = ['Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat', 'Sun'];
const kShares = [0.3, 0.6, 0.85, 0.97]; // of the fields with jobs: so many are paler than each step

/** Lower ends of the five steps of colour, by rank: one storm does not make the rest of the week look alike. */
export function steps(numbers) {
  const order = numbers.filter((n) => n > 0).sort((a, b) => a - b);
  if (order.length === 0) return [];
  const ends = [order[0], ...kShares.map((share) => order[Math.min(order.length - 1, Math.floor(share * order.length))])];
  return [...new Set(ends)];
}
const stepOf = (n, ends) => {
  const step = ends.filter((end) => n >= end).length;
  return step === 0 ? '' : `h${ends.length === 1 ? 3 : Math.round(1 + (4 * (step - 1)) / (ends.length - 1))}`;
};

function Legend({ends, capacity, width}) {
  if (ends.length === 0) return null;
  return html`<div class="legend">${ends.map((end, i) => html`<span><i class=${stepOf(end, ends)}></i>${i + 1 < ends.length ? (ends[i + 1] - 1 > end ? `${number(end)} to ${number(ends[i + 1] - 1)}` : number(end)) : `${number(end)} and more`}</span>`)}
    <span>≈ estimated from a sample</span>${capacity && html`<span>red line: above the shown capacity of ${number(Math.round(capacity.n))} ${width === 'hour' ? 'an hour' : 'a day'}</span>`}</div>`;
}

// `from`: of the slot of now, when it was counted; what was due before is overdue and not in it.
const Cell = ({item, type, from, until, ends, name, isNow, capacity}) => {
  if (!item || item.n <= 0) return html`<span class=${isNow ? 'now' : ''}><span class="visually-hidden">${name}: none</span><span aria-hidden="true">·</span></span>`;
  const text = `${name}: ${number(item.n)}${item.isExact ? '' : `, between ${number(item.low)} and ${number(item.high)}`}`;
  const css = [stepOf(item.n, ends), isNow && 'now', capacity && item.n > capacity.n && 'over'].filter(Boolean).join(' ');
  return html`<a class=${css} title=${text} aria-label=${text} href=${link('jobs', {biz_type: type, status: 'pending', from: (from || item.at).toISOString(), to: until.toISOString()})}>${item.isExact ? '' : '≈'}${short(item.n)}</a>`;
};

const Unused = ({width}) => html`<p class="muted small-text">Nothing is due in this time, as far as it has been counted; new jobs appear after a minute or two. Each field is ${width === 'hour' ? 'an hour' : 'a day'}: the more is due, the stronger its colour, and a click lists the jobs.</p>`;

const counted = (at, isCut) => (at ? `, counted ${away(at)}` : '') + (isCut ? '; the far end is left out: choose a type' : '');

const kHour = 3_600_000;
const two = (n) => String(n).padStart(2, '0');

/**
 * The hours of eight days from `first` on: {columns: [{hour, isAgain, text}], days: [{day, cells}]}, a cell for each column:
 * the beginning of the slot, or undefined where the clocks skip it. Slots are hours of UTC, so in some zones they begin at
 * a half or a quarter. An hour that comes twice, when the clocks go back, has two columns.
 */
export function hoursFrom(first) {
  const days = Array.from({length: 8}, (_, n) => ({day: plusDays(first, n), slots: new Map()}));
  const byDay = new Map(days.map((each) => [dayOf(each.day), each])), names = new Map(), minutes = new Set();
  for (let at = Math.ceil(first / kHour) * kHour; at < Number(plusDays(first, 8)); at += kHour) {
    const time = new Date(at), hour = hourOf(time), slots = byDay.get(dayOf(time)).slots;
    const isAgain = slots.has(String(hour)), name = hour + (isAgain ? ' again' : '');
    slots.set(name, time);
    names.set(name, {hour, isAgain, name});
    minutes.add(clock(time).slice(3));
  }
  const minute = minutes.size === 1 && !minutes.has('00') ? ':' + [...minutes][0] : '';
  const columns = [...names.values()].sort((a, b) => a.hour - b.hour || a.isAgain - b.isAgain).map((each) => ({...each, text: two(each.hour) + minute}));
  return {columns, days: days.map(({day, slots}) => ({day, cells: columns.map(({name}) => slots.get(name))}))};
}

const rowsOf = (items, width) => [[`${width} (${width === 'hour' ? zoneName() : 'UTC'})`, 'due', 'low', 'high', 'exact'],
  ...items.map((item) => [item.at.toISOString(), item.n, item.low, item.high, item.isExact])];

// In a narrow window the table begins at the hour of now.
const showNow = (table) => {
  const now = table && table.querySelector('.now');
  const beyond = now ? now.getBoundingClientRect().right - table.getBoundingClientRect().right : 0;
  if (beyond > 0) table.scrollLeft += beyond + table.clientWidth / 2;
};

function Hours({type, capacity}) {
  const {answer, items, countedAt, isCut} = useHorizon('hour', type);
  const first = startOfDay(new Date()), now = Math.floor(Date.now() / kHour) * kHour;
  const {columns, days} = useMemo(() => hoursFrom(first), [Number(first)]);
  const by = useMemo(() => new Map(items.map((item) => [Number(item.at), item])), [items]);
  const ends = steps(items.map((item) => item.n)), limit = capacityOf('hour', capacity);
  return html`<${Panel} title="The next seven days" note=${`by hour, ${zoneName()}${counted(countedAt, isCut)}`} actions=${items.length > 0 && html`<${Csv} name="Due by hour" rows=${() => rowsOf(items, 'hour')} />`}>
    ${!answer.data ? html`<${Missing} answer=${answer} what="The calendar" tall="hours" />` : html`<${Stale} answer=${answer} /><${Missed} data=${answer.data} /><div class="scroll" ref=${showNow} tabindex="0" role="group" aria-label="Jobs due by hour"><table class="heat"><caption class="visually-hidden">Jobs due by hour (${zoneName()})</caption>
    <thead><tr><th scope="col" class="day">Day</th>${columns.map(({text, isAgain}) => html`<th scope="col" class="num" title=${isAgain ? 'This hour again: the clocks go back' : undefined}>${text}${isAgain && html`<small>again</small>`}</th>`)}</tr></thead>
    <tbody>${days.map(({day, cells}) => html`<tr><th scope="row" class="day">${weekday(day)} ${dayOf(day).slice(5)}</th>${cells.map((at, i) => (at ?
      html`<td><${Cell} item=${by.get(Number(at))} type=${type} ends=${ends} capacity=${limit} isNow=${Number(at) === now} from=${Number(at) === now && countedAt ? new Date(countedAt) : at} name=${`${dayOf(at)} ${clock(at)}${columns[i].isAgain ? ' again' : ''}`} until=${new Date(Number(at) + kHour)} /></td>` : html`<td></td>`))}</tr>`)}</tbody></table></div>
    <${items.length ? Legend : Unused} ends=${ends} capacity=${limit} width="hour" />`}<//>`;
}

function Days({type, capacity}) {
  const {answer, items, countedAt, isCut} = useHorizon('day', type);
  const today = startOfDay(new Date());
  const monday = plusDays(today, -kDays.indexOf(weekday(today)));
  const by = new Map(items.map((item) => [item.at.toISOString().slice(0, 10), item])); // days are counted in UTC
  const ends = steps(items.map((item) => item.n)), limit = capacityOf('day', capacity);
  return html`<${Panel} title="The next twelve weeks" note=${`by day of UTC${counted(countedAt, isCut)}`} actions=${items.length > 0 && html`<${Csv} name="Due by day" rows=${() => rowsOf(items, 'day')} />`}>
    ${!answer.data ? html`<${Missing} answer=${answer} what="The calendar" tall="days" />` : html`<div class="scroll" tabindex="0" role="group" aria-label="Jobs due by day"><table class="heat wide-cells"><caption class="visually-hidden">Jobs due by day (days of UTC)</caption>
    <thead><tr><th scope="col" class="day">Week of</th>${kDays.map((day) => html`<th scope="col" class="num">${day}</th>`)}</tr></thead>
    <tbody>${Array.from({length: 13}, (_, week) => plusDays(monday, 7 * week)).map((start) => html`<tr><th scope="row" class="day">${dayOf(start).slice(5)}</th>${Array.from({length: 7}, (_, n) => {
      const day = dayOf(plusDays(start, n)), item = by.get(day);
      return html`<td><${Cell} item=${item} type=${type} ends=${ends} capacity=${limit} isNow=${day === new Date().toISOString().slice(0, 10)} name=${day} until=${item && new Date(Number(item.at) + 86_400_000)} /></td>`;
    })}</tr>`)}</tbody></table></div>
    <${items.length ? Legend : Unused} ends=${ends} capacity=${limit} width="day" />`}<//>`;
}

function Overdue({type}) {
  const backlog = useByType('backlog', 6, type), items = (backlog.data && backlog.data.items) || [];
  const due = items.reduce((sum, row) => sum + Number(row.due), 0);
  if (due === 0) return null;
  return html`<p class="muted">${sentenceCase(capped(due, items.every((row) => row.is_exact !== false)))} ${due === 1 ? 'job is' : 'jobs are'} past ${due === 1 ? 'its' : 'their'} time already and not in the calendar: <a href=${link('jobs', {biz_type: type, status: 'pending', to: new Date().toISOString()})}>see them</a>.</p>`;
}

export function Calendar() {
  const type = useShared().query.get('type') || '';
  const capacity = useCapacity(type);
  return html`<${Title} text="Calendar"><span class="grow"></span><${Field} label="Type"><${TypeSelect} value=${type} onChange=${(name) => go(link('calendar', {type: name}))} /><//><//>
    <${Overdue} type=${type} /><${Hours} type=${type} capacity=${capacity} /><${Days} type=${type} capacity=${capacity} />`;
}

// What is coming, by hour and by day; every field leads to its jobs.
import {html, useMemo, useState} from '../vendor/preact.js';
import {dayOf, hourOf, number, plusDays, short, startOfDay, weekday, zoneName} from '../format.js';
import {useGet} from '../rest.js';
import {link, useShared} from '../state.js';
import {useHorizon} from '../reports.js';
import {Field, Missing, Panel, Stale, Title} from '../ui.js';

const heat = (n, most) => (n <= 0 ? '' : 'h' + Math.max(1, Math.min(5, Math.ceil((5 * n) / most))));

const Cell = ({item, type, until, most, name}) => {
  if (!item || item.n <= 0) return html`<span aria-label=${`${name}: none`}>·</span>`;
  const text = `${name}: ${number(item.n)}${item.isExact ? '' : `, between ${number(item.low)} and ${number(item.high)}`}`;
  return html`<a class=${heat(item.n, most)} title=${text} aria-label=${text} href=${link('jobs', {biz_type: type, status: 'pending', from: item.at.toISOString(), to: until.toISOString()})}>${item.isExact ? '' : '≈'}${short(item.n)}</a>`;
};

function Hours({type}) {
  const {answer, items} = useHorizon('hour', type);
  const first = startOfDay(new Date());
  const rows = useMemo(() => {
    const by = new Map(items.map((item) => [`${dayOf(item.at)} ${hourOf(item.at)}`, item]));
    return Array.from({length: 8}, (_, n) => plusDays(first, n)).map((day) => ({day, cells: Array.from({length: 24}, (_each, hour) => by.get(`${dayOf(day)} ${hour}`))}));
  }, [items, Number(first)]);
  const most = Math.max(...items.map((item) => item.n), 1);
  if (!answer.data) return html`<${Missing} answer=${answer} what="The calendar" />`;
  return html`<${Stale} answer=${answer} /><div class="scroll" tabindex="0" role="group" aria-label="Jobs due by hour"><table class="heat"><caption>Jobs due by hour (${zoneName()})</caption>
    <thead><tr><th scope="col" class="day">Day</th>${Array.from({length: 24}, (_, hour) => html`<th scope="col" class="num">${hour}</th>`)}</tr></thead>
    <tbody>${rows.map(({day, cells}) => html`<tr><th scope="row" class="day">${weekday(day)} ${dayOf(day).slice(5)}</th>${cells.map((item, hour) =>
      html`<td><${Cell} item=${item} type=${type} most=${most} name=${`${dayOf(day)} ${hour}:00`} until=${item && new Date(Number(item.at) + 3_600_000)} /></td>`)}</tr>`)}</tbody></table></div>`;
}

function Days({type}) {
  const {answer, items} = useHorizon('day', type);
  const today = startOfDay(new Date());
  const monday = plusDays(today, -((['Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat', 'Sun'].indexOf(weekday(today)))));
  const by = new Map(items.map((item) => [item.at.toISOString().slice(0, 10), item])); // days are counted in UTC
  const most = Math.max(...items.map((item) => item.n), 1);
  if (!answer.data) return html`<${Missing} answer=${answer} what="The calendar" />`;
  return html`<div class="scroll" tabindex="0" role="group" aria-label="Jobs due by day"><table class="heat wide-cells"><caption>Jobs due by day (days of UTC)</caption>
    <thead><tr><th scope="col" class="day">Week of</th>${['Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat', 'Sun'].map((day) => html`<th scope="col" class="num">${day}</th>`)}</tr></thead>
    <tbody>${Array.from({length: 12}, (_, week) => plusDays(monday, 7 * week)).map((start) => html`<tr><th scope="row" class="day">${dayOf(start).slice(5)}</th>${Array.from({length: 7}, (_, n) => {
      const day = plusDays(start, n), item = by.get(dayOf(day));
      return html`<td><${Cell} item=${item} type=${type} most=${most} name=${dayOf(day)} until=${item && new Date(Number(item.at) + 86_400_000)} /></td>`;
    })}</tr>`)}</tbody></table></div>`;
}

export function Calendar() {
  const shared = useShared();
  const types = useGet('v1/types?limit=1000', {every: 12});
  const [type, setType] = useState(shared.query.get('type') || '');
  const names = ((types.data && types.data.items) || []).map((each) => each.name);
  return html`<${Title} text="Calendar"><span class="grow"></span><${Field} label="Type"><select value=${type} onChange=${(e) => setType(e.target.value)}><option value="">all</option>${names.map((name) => html`<option value=${name}>${name}</option>`)}</select><//><//>
    <${Panel} title="The next seven days" note="≈ is an estimate from a sample"><${Hours} type=${type} /><//>
    <${Panel} title="The next twelve weeks"><${Days} type=${type} /><//>`;
}

// Every report of the REST interface as a table, and as a file.
import {html, useEffect, useState} from '../vendor/preact.js';
import {length, moment, number, percent, zoneName} from '../format.js';
import {call, curl, query, useGet} from '../rest.js';
import {go, link, state, useShared} from '../state.js';
import {download} from '../csv.js';
import {TypeSelect} from '../reports.js';
import {Count, Curl, Field, Foreign, Good, JobLink, Missed, Missing, Panel, Problem, Stale, Table, Title, TypeLink, useAction} from '../ui.js';

// Title, contents, and whether it has a range of time.
const kReports = {
  day: ['Events by day', 'What happened, with the lateness of first starts.', true],
  hour: ['Events by hour', 'The same by the hour.', true],
  lateness: ['Lateness by hour', 'How late first starts were.', true],
  duration: ['Duration by hour', 'How long attempts took, by their outcome.', true],
  slo: ['Targets', 'First starts of the last 30 days against the target of their type.', false],
  outcome: ['Outcomes by day of creation', 'What became of the deadlines that were set on each day (UTC).', true],
  delay: ['How far ahead', 'How far ahead deadlines are set.', false],
  dead: ['Deaths by day', 'Deaths by day (UTC), type and reason, as they were counted.', true],
  backlog: ['Backlog', 'What is overdue now, and what it waits for.', false],
  audit: ['Audit log', 'Writes through the API by callers with a token.', true],
};
const kRanges = {day: ['24 hours', 1], week: ['7 days', 7], month: ['30 days', 30], quarter: ['90 days', 90], year: ['400 days', 400]};
const kMostRows = 50_000; // of a file

const isTime = (name) => /^(slot|at|created_day)$|_at$/.test(name);
const isText = (name) => isTime(name) || /^(biz_type|reason|outcome|waits_for|actor|role|address|action|target|filter|is_met|is_exact)$/.test(name);

// Reports whose days are those of UTC, whatever zone the reader has.
const kUtcDays = ['outcome', 'dead'];
const isUtcDay = (report, name) => kUtcDays.includes(report) && /^(slot|created_day)$/.test(name);

function shown(report, name, value) {
  if (value === null || value === undefined) return html`<span class="zero">–</span>`;
  if (name === 'biz_type') return html`<${TypeLink} name=${value} />`;
  if (name === 'sample_job_id') return html`<${JobLink} id=${String(value)} />`;
  if (name === 'is_exact') return value ? 'yes' : 'no, at least';
  if (name === 'is_met') return html`<${Good} is=${value} yes="met" no="missed" />`;
  if (isUtcDay(report, name)) return html`<span class="nowrap">${String(value).slice(0, 10)}</span>`;
  if (isTime(name)) return html`<span class="nowrap">${moment(value).replace(/ 00:00:00$/, '').replace(/(\d\d:00):00$/, '$1')}</span>`;
  if (/_ms$/.test(name)) return length(value);
  if (/share|budget/.test(name)) return percent(value, 2);
  if (isText(name)) return html`<${Foreign} text=${typeof value === 'string' ? value : JSON.stringify(value)} mono=${false} clip />`;
  return html`<${Count} n=${value} />`;
}
const title = (report, name) => name.replace(/_ms$/, '').replaceAll('_', ' ') + (isTime(name) ? ` (${isUtcDay(report, name) ? 'UTC' : zoneName()})` : '');

const here = () => new URL('.', location.href).href.replace(/\/$/, '');

// The same rows, of one database.
function sql(name, {type, from, tz}) {
  const text = (value) => `'${value.replaceAll("'", "''")}'`;
  const view = {slo: 'report_slo', backlog: 'backlog', audit: 'audit'}[name] || `report_${name}`;
  const time = {outcome: 'created_day', audit: 'at'}[name] || 'slot';
  const where = [type && name !== 'audit' && `biz_type = ${text(type)}`, from && !tz && `${time} >= ${text(from)}`].filter(Boolean).join(' AND ');
  return `SELECT * FROM tocsin.${tz ? `report_day_at(${text(tz)}, ${text(from)})` : view}${where ? ` WHERE ${where}` : ''};`;
}

export function Reports() {
  const place = useShared().query;
  const name = kReports[place.get('report')] ? place.get('report') : 'day', type = place.get('type') || '', cursor = place.get('cursor') || '';
  const range = kRanges[place.get('range')] ? place.get('range') : 'week';
  const [label, what, hasRange] = kReports[name];
  const hour = Math.floor(Date.now() / 3_600_000) * 3_600_000;
  const zone = name === 'day' && state.zone === 'local' ? zoneName() : '';
  const asked = {type, from: hasRange ? new Date(hour - kRanges[range][1] * 86_400_000).toISOString() : '', tz: zone};
  const path = `v1/reports/${name}`;
  const answer = useGet(path + query({...asked, cursor, limit: '100'}), {every: 6});
  const action = useAction();
  const [progress, setProgress] = useState(0);
  const items = (answer.data && answer.data.items) || [];
  const names = items.length > 0 ? Object.keys(items[0]) : [];
  // A cursor belongs to one range, type and zone: when one of them has changed, the first page is the one to show.
  const isPastPage = Boolean(answer.error && answer.error.problem && answer.error.problem.field === 'cursor');
  const to = (changes) => link('reports', {report: name === 'day' ? '' : name, type, range: range === 'week' ? '' : range, ...changes});
  useEffect(() => {
    if (isPastPage) go(to({}), {replace: true});
  }, [isPastPage]);
  const save = () => action.run(async () => {
    const all = [];
    let next = '';
    do {
      const {data} = await call('GET', path + query({...asked, cursor: next, limit: '1000'}));
      all.push(...data.items);
      next = data.next_cursor;
      setProgress(all.length);
    } while (next && all.length < kMostRows);
    setProgress(0);
    const head = Object.keys(all[0] || {});
    download(`tocsin ${name}${type ? ` ${type}` : ''} ${hasRange ? kRanges[range][0] : ''}`, [head, ...all.map((row) => head.map((each) => row[each]))]);
    return next ? `The first ${number(all.length)} rows are in the file; choose a shorter range for the rest.` : `${number(all.length)} rows are in the file.`;
  });
  return html`<${Title} text="Reports" />
    <${Panel} label="Which report"><div class="form">
      <${Field} label="Report"><select value=${name} onChange=${(e) => go(to({report: e.target.value}))}>${Object.entries(kReports).map(([key, [text]]) => html`<option value=${key}>${text}</option>`)}</select><//>
      <${Field} label="Type"><${TypeSelect} value=${type} onChange=${(chosen) => go(to({type: chosen}))} /><//>
      ${hasRange && html`<${Field} label="Last"><select value=${range} onChange=${(e) => go(to({range: e.target.value}))}>${Object.entries(kRanges).map(([key, [text]]) => html`<option value=${key}>${text}</option>`)}</select><//>`}
      <button disabled=${action.isBusy || items.length === 0} onClick=${save}>${action.isBusy ? `Reading${progress ? ` ${number(progress)}` : ''}…` : 'Download CSV'}</button></div><${Problem} text=${action.problem} /><//>
    <${Stale} answer=${answer} /><${Missed} data=${answer.data} />
    <${Panel} title=${label} note=${what}>${!answer.data ? html`<${Missing} answer=${answer} what="The report" tall />` : items.length === 0 ? html`<p class="muted">Nothing in this range. Events are counted from the first job on and kept for 400 days.</p>` :
      html`<${Table} caption=${label} rows=${items} columns=${names.map((each) => ({label: title(name, each), isNumber: !isText(each), cell: (row) => shown(name, each, row[each])}))} />`}
      ${(cursor || (answer.data && answer.data.next_cursor)) && html`<div class="more">${cursor && html`<a class="button small" href=${to({})}>First page</a>`}${answer.data && answer.data.next_cursor && html`<a class="button small" href=${to({cursor: answer.data.next_cursor})}>Next page</a>`}</div>`}<//>
    <${Panel} title="The same elsewhere"><div class="curls"><${Curl} label="REST" text=${curl('GET', path + query(asked))} /><${Curl} label="command line" text=${`tocsin report ${name}${type ? ` --type ${type}` : ''}${asked.from ? ` --from ${asked.from}` : ''}${zone ? ` --tz ${zone}` : ''} --url ${here()} --csv`} />
      <${Curl} label="SQL" text=${sql(name, asked)} /></div><//>`;
}

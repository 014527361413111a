// Search, and what can be done to many jobs.
import {html, useEffect, useState} from '../vendor/preact.js';
import {fromInput, length, number, toInput, zoneName} from '../format.js';
import {call, query, useGet} from '../rest.js';
import {go, link, may, useShared} from '../state.js';
import {BulkDialog, kBulkActions} from '../bulk.js';
import {TypeSelect} from '../reports.js';
import {Empty, Field, Foreign, JobLink, Missed, Missing, Panel, Problem, Stale, Status, Table, Time, Title, TypeLink, useAction} from '../ui.js';

const kStatuses = ['pending', 'running', 'done', 'cancelled', 'dead'];
const kFilters = ['biz_id', 'biz_type', 'status', 'from', 'to'];

const kHour = 3_600_000;
// Usual ranges of deadlines: [value, text, filters].
const kRanges = [
  ['any', 'any time', () => ({from: '', to: ''})],
  ['overdue', 'already past', () => ({from: '', to: new Date().toISOString()})],
  ['hour', 'next hour', () => ({from: new Date().toISOString(), to: new Date(Date.now() + kHour).toISOString()})],
  ['day', 'next 24 hours', () => ({from: new Date().toISOString(), to: new Date(Date.now() + 24 * kHour).toISOString()})],
  ['own', 'from … to …', () => ({})],
];

function Search({filters}) {
  const [form, setForm] = useState(filters);
  const [range, setRange] = useState('any');
  const key = JSON.stringify(filters);
  useEffect(() => setForm(filters), [key]);
  const set = (name) => (event) => setForm({...form, [name]: event.target.value});
  const setTime = (name) => (event) => setForm({...form, [name]: fromInput(event.target.value)});
  const choose = (event) => {
    setRange(event.target.value);
    setForm({...form, ...kRanges.find(([name]) => name === event.target.value)[2]()});
  };
  const search = (event) => {
    event.preventDefault();
    const id = /^\s*id:\s*(\d+)\s*$/.exec(form.biz_id || '');
    go(id ? link('job', {id: id[1]}) : link('jobs', form));
  };
  const isOwn = Boolean(form.from || form.to || range === 'own');
  return html`<form class="form" role="search" onSubmit=${search}>
    <${Field} label="Business key, or id:123 for a job" wide><input id="search" type="search" autocomplete="off" spellcheck="false" placeholder="order-42" value=${form.biz_id || ''} onInput=${set('biz_id')} /><//>
    <${Field} label="Type"><${TypeSelect} value=${form.biz_type || ''} onChange=${(name) => setForm({...form, biz_type: name})} /><//>
    <${Field} label="State"><select value=${form.status || ''} onChange=${set('status')}><option value="">all</option>${kStatuses.map((name) => html`<option value=${name}>${name}</option>`)}</select><//>
    <${Field} label="Deadline"><select value=${isOwn && range === 'any' ? 'own' : range} onChange=${choose}>${kRanges.map(([name, text]) => html`<option value=${name}>${text}</option>`)}</select><//>
    ${isOwn && html`<${Field} label=${`Due from (${zoneName()})`}><input type="datetime-local" step="1" value=${toInput(form.from)} onInput=${setTime('from')} /><//>
    <${Field} label=${`Due before (${zoneName()})`}><input type="datetime-local" step="1" value=${toInput(form.to)} onInput=${setTime('to')} /><//>`}
    <button class="primary" type="submit">Search</button>
    ${kFilters.some((name) => filters[name]) && html`<a class="button" href=${link('jobs')} onClick=${() => setRange('any')}>Clear</a>`}
  </form>`;
}

/** Changes the chosen jobs; returns how many had each result. */
async function changeAll(verb, ids) {
  if (verb === 'cancel') {
    const {data} = await call('POST', 'v1/jobs/cancel', {job_ids: ids});
    return Object.entries(data).map(([name, list]) => `${list.length} ${name.replace('_', ' ')}`).filter((text) => !text.startsWith('0')).join(', ') + '.';
  }
  let changed = 0;
  const refused = [];
  for (const id of ids) {
    try {
      await call('POST', `v1/jobs/${id}/${verb}`);
      ++changed;
    } catch (error) {
      if (error.status !== 409 && error.status !== 404) throw error;
      refused.push(error);
    }
  }
  return `${changed} of ${ids.length} changed${refused.length ? `; the others: ${refused[0].message}` : '.'}`;
}

function Selected({ids, clear, reload}) {
  const action = useAction();
  const run = async (verb) => {
    await action.run(() => changeAll(verb, ids));
    clear();
    reload();
  };
  if (ids.length === 0) return html`<${Problem} text=${action.problem} />`;
  return html`<div class="buttons"><span>${number(ids.length)} selected:</span>${['cancel', 'run', 'retry'].map((verb) =>
    html`<button class=${verb === 'cancel' ? 'small danger' : 'small'} disabled=${action.isBusy} onClick=${() => run(verb)}>${kBulkActions[verb][0]}</button>`)}<${Problem} text=${action.problem} /></div>`;
}

const Lateness = ({job}) => (job.lateness_ms === null || job.lateness_ms === undefined ? html`<span class="zero">–</span>` : length(job.lateness_ms));
const isOverdue = (job) => job.status === 'pending' && new Date(job.fire_at) < Date.now() - 1000;

export function JobTable({jobs, chosen, choose, caption = 'Jobs'}) {
  const columns = [
    {label: 'Business key', cell: (j) => html`<a href=${link('job', {id: j.job_id})}><${Foreign} text=${j.biz_id} clip /></a>`},
    {label: 'Type', cell: (j) => html`<${TypeLink} name=${j.biz_type} />`},
    {label: 'State', cell: (j) => html`<span class="state"><${Status} status=${j.status} /></span>`},
    {label: `Deadline (${zoneName()})`, cell: (j) => html`<span class="nowrap"><${Time} at=${j.action_time} /></span>`},
    {label: 'Due', holds: 'age', cell: (j) => html`<span class=${isOverdue(j) ? 'nowrap is-warn' : 'nowrap muted'}>${j.status === 'pending' ? html`<${Time} at=${j.fire_at} relative />` : ''}</span>`},
    {label: 'Lateness', isNumber: true, holds: 'length', cell: (j) => html`<${Lateness} job=${j} />`},
    {label: 'Attempts', isNumber: true, cell: (j) => html`${j.attempts}<span class="muted"> of ${j.max_attempts}</span>`},
    {label: 'Job', isNumber: true, cell: (j) => html`<${JobLink} id=${j.job_id} />`},
  ];
  if (choose)
    columns.unshift({label: html`<input type="checkbox" aria-label="All of this page" checked=${jobs.length > 0 && jobs.every((j) => chosen.has(j.job_id))}
      onChange=${(e) => choose(e.target.checked ? new Set(jobs.map((j) => j.job_id)) : new Set())} />`,
      cell: (j) => html`<input type="checkbox" aria-label=${`Job ${j.job_id}`} checked=${chosen.has(j.job_id)} onChange=${(e) => {
        const next = new Set(chosen);
        e.target.checked ? next.add(j.job_id) : next.delete(j.job_id);
        choose(next);
      }} />`});
  return html`<${Table} caption=${caption} columns=${columns} rows=${jobs} rowKey=${(j) => j.job_id} />`;
}

export function Jobs() {
  const shared = useShared();
  const filters = Object.fromEntries(kFilters.map((name) => [name, shared.query.get(name) || '']));
  const cursor = shared.query.get('cursor') || '';
  const page = useGet('v1/jobs' + query({...filters, cursor, limit: '50'}), {every: cursor ? 0 : 1});
  const [chosen, choose] = useState(new Set());
  const [isBulk, setBulk] = useState(false);
  const place = shared.query.toString();
  useEffect(() => choose(new Set()), [place]);
  const jobs = (page.data && page.data.items) || [];
  const ids = jobs.map((j) => j.job_id).filter((id) => chosen.has(id));
  const isFiltered = kFilters.some((name) => filters[name]);
  const mayChangeAll = kFilters.some((name) => name !== 'status' && filters[name]); // what a bulk change asks for
  const close = () => {
    setBulk(false);
    page.reload();
  };
  return html`<${Title} text="Jobs" /><${Panel} label="Search"><${Search} filters=${filters} /><//>
    <${Stale} answer=${page} /><${Missed} data=${page.data} />
    <${Panel} title="Found" note=${page.data ? `${number(jobs.length)}${page.data.next_cursor ? ' of more' : ''}, newest first` : ' '}
      actions=${may('produce') && html`<${Selected} ids=${ids} clear=${() => choose(new Set())} reload=${page.reload} />
        ${jobs.length > 0 && mayChangeAll && html`<button class="small" onClick=${() => setBulk(true)}>All that match…</button>`}`}>
      ${!page.data ? html`<${Missing} answer=${page} what="The list" tall />` : jobs.length > 0 ? html`<${JobTable} jobs=${jobs} chosen=${chosen} choose=${may('produce') ? choose : null} />` :
        isFiltered || cursor ? html`<p class="muted">No job matches. Ended jobs are kept for some days only.${/^\d+$/.test(filters.biz_id) && html` Is <a href=${link('job', {id: filters.biz_id})}>${filters.biz_id}</a> the id of a job?`}</p>` :
        html`<${Empty} method="POST" path="v1/jobs" body=${{biz_type: 'demo', biz_id: 'order-42', delay_ms: 60000}}>There is no job yet. This creates one that is due in a minute, if there is a type <code>demo</code>:<//>`}
      ${(cursor || (page.data && page.data.next_cursor)) && html`<div class="more">${cursor && html`<a class="button small" href=${link('jobs', filters)}>Newest</a>`}${page.data && page.data.next_cursor && html`<a class="button small" href=${link('jobs', {...filters, cursor: page.data.next_cursor})}>Next page</a>`}</div>`}
    <//>
    ${isBulk && html`<${BulkDialog} filter=${filters} actions=${filters.status === 'dead' ? ['retry'] : filters.status === 'pending' ? ['cancel', 'run', 'reschedule'] : ['cancel', 'run', 'reschedule', 'retry']} onClose=${close} />`}`;
}

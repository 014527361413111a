// The kinds of timeout: what they hold, how they do, and their settings.
import {html, useMemo, useState} from '../vendor/preact.js';
import {Bars, Spark} from '../charts.js';
import {capped, fromInput, length, moment, number, percent, plusDays, roughly, sentenceCase, short, startOfDay, toInput, zoneName} from '../format.js';
import {call, curl, useGet} from '../rest.js';
import {link, may, useShared} from '../state.js';
import {Badge, Count, Curl, Dialog, Empty, Field, Foreign, Good, JobLink, Missed, Missing, Panel, Problem, Segments, Stale, Table, TableCsv, Tiles, Title, TypeLink, Verdict, useAction} from '../ui.js';
import {capacityOf, courses, useByType, useCapacity, useHorizon, useHours, useTypes} from '../reports.js';
import {Charts} from './overview.js';

const kHours = 24;
const path = (name, verb = '') => `v1/types/${encodeURIComponent(name)}${verb && '/' + verb}`;

const Paused = ({type}) => (type.paused ?
  html`<${Badge} icon="❚❚" kind="warn">paused${type.paused_until ? ` until ${moment(type.paused_until).slice(0, 16)} ${zoneName()}` : ''}<//>` :
  html`<span class="muted">fires</span>`);
const Met = ({slo}) => (slo && typeof slo.is_met === 'boolean' ? html`<${Good} is=${slo.is_met} yes=${percent(slo.share, 2)} no=${percent(slo.share, 2)} />` : html`<span class="zero">none</span>`);
const isLate = (p99, type) => type.slo && p99 > type.slo.lateness_ms;
const P99 = ({p99, type}) => html`<span class=${isLate(p99, type) ? 'is-bad' : ''}>${length(p99)}</span>${type.slo && html`<span class="sub">of ${length(type.slo.lateness_ms)}</span>`}`;

function useRows() {
  const types = useTypes(2), stats = useGet('v1/stats'), slo = useByType('slo', 12);
  const backlog = useByType('backlog', 2), hours = useHours(kHours), recent = useByType('recent', 2);
  const rows = useMemo(() => {
    const by = (data) => new Map(((data && data.items) || []).map((row) => [row.biz_type, row]));
    const counts = by(stats.data), met = by(slo.data), due = by(backlog.data), late = by(recent.data), course = courses(hours.data, kHours);
    return ((types.data && types.data.items) || []).map((type) => ({type, counts: counts.get(type.name) || {}, slo: met.get(type.name), due: due.get(type.name), recent: late.get(type.name), course: course.get(type.name)}));
  }, [types.data, stats.data, slo.data, backlog.data, hours.data, recent.data]);
  return {types, stats, rows, hours};
}

function target(type) {
  const h = type.handler;
  return h.url ? h.url.replace(/^(https?:\/\/[^/]*).*/, '$1') : h.function || h.topic || h.exchange || '';
}

/** Jobs of noop finish as they start: none of them runs, so max_running has no effect. */
const hasRuns = (type) => type.handler.kind !== 'noop';

/** What stands below the number of running jobs: only jobs with a valid lease count for max_running. */
const ofLimit = (running, most) => `of ${number(most)}${running > most ? `, ${number(running - most)} or more with an ended lease` : ''}`;

const kColumns = [
  {label: 'Type', cell: (r) => html`<${TypeLink} name=${r.type.name} wraps />${r.type.paused && html` <${Paused} type=${r.type} />`}<span class="sub nowrap">${r.type.handler.kind}${target(r.type) && ` · ${target(r.type).replace(/^https?:\/\//, '')}`}</span>`, csv: (r) => r.type.name},
  {label: 'State', csv: (r) => (r.type.paused ? 'paused' : 'fires')}, // on the page beside the name, if paused
  {label: 'Overdue', isNumber: true, holds: 'length', cell: (r) => (r.due ? html`${r.due.is_exact === false ? capped(r.due.due, false) : html`<${Count} n=${r.due.due} />`}${r.due.due > 0 && html`<span class="sub">${roughly(r.due.oldest_age_ms)}</span>`}` : '–'), csv: (r) => r.due?.due},
  {label: 'Dead', isNumber: true, cell: (r) => (r.counts.dead ? html`<a class="is-bad" href=${link('dead', {type: r.type.name})}>${number(r.counts.dead)}</a>` : html`<${Count} n=${r.counts.dead} />`), csv: (r) => r.counts.dead},
  {label: 'Pending', isNumber: true, cell: (r) => html`<a href=${link('jobs', {biz_type: r.type.name, status: 'pending'})}>${number(r.counts.pending)}</a>`, csv: (r) => r.counts.pending},
  {label: 'Running', isNumber: true, cell: (r) => html`<${Count} n=${r.counts.running} />${r.type.max_running && hasRuns(r.type) && html`<span class="sub">${ofLimit(r.counts.running, r.type.max_running)}</span>`}`, csv: (r) => r.counts.running},
  {label: 'Rate limit', isNumber: true, cell: (r) => (r.type.rate_per_s ? `${number(r.type.rate_per_s)} /s` : html`<span class="zero">none</span>`), csv: (r) => r.type.rate_per_s},
  {label: 'Done, 24 h', isNumber: true, cell: (r) => html`<${Count} n=${r.course?.sum} />`, csv: (r) => r.course?.sum ?? 0},
  {label: 'By hour', isNumber: true, cell: (r) => html`<${Spark} values=${r.course?.done} text=${`${r.type.name}: done by hour in 24 h`} />`},
  {label: 'Lateness p99', isNumber: true, holds: 'length', cell: (r) => html`<${P99} p99=${r.recent?.p99_ms} type=${r.type} />`, csv: (r) => r.recent?.p99_ms},
  {label: 'In time, 30 d', isNumber: true, cell: (r) => html`<${Met} slo=${r.slo} />`, csv: (r) => r.slo?.share},
];

const kMany = 12; // types: from there on they are searched and put in order
const kMostRows = 1000; // of the table: a browser draws no more in a moment
const urgency = (r) => [r.due?.due > 0 && !r.type.paused ? Number(r.due.oldest_age_ms) : 0, isLate(r.recent?.p99_ms, r.type) || r.slo?.is_met === false ? 1 : 0, r.counts.dead || 0];
const byUrgency = (a, b) => {
  const first = urgency(a), second = urgency(b), i = first.findIndex((n, at) => n !== second[at]);
  return i < 0 ? 0 : second[i] - first[i];
};

function All() {
  const {types, stats, rows, hours} = useRows();
  const [text, setText] = useState('');
  const [order, setOrder] = useState('name');
  if (!types.data) return html`<${Panel} title="Types"><${Missing} answer=${types} what="The list of types" tall /><//>`;
  if (rows.length === 0)
    return html`<${Panel} title="Types"><${Empty} method="PUT" path="v1/types/order.unpaid" body=${{handler: {kind: 'webhook', url: 'http://127.0.0.1:9000/hook'}, max_attempts: 16, slo: {lateness_ms: 1000, share: 0.999}}}>
      There is no type yet. A type says what happens at the deadline, how often it is tried, and how late it may be:<//><//>`;
  const found = rows.filter((r) => r.type.name.toLowerCase().includes(text.trim().toLowerCase()));
  const shown = order === 'name' ? found : [...found].sort(byUrgency);
  const all = `${types.data.next_cursor ? 'the first ' : ''}${number(rows.length)} types`;
  const title = shown.length > kMostRows ? `The first ${number(kMostRows)} of ${shown.length < rows.length ? `${number(shown.length)} of ` : ''}${all}` :
    shown.length < rows.length ? `${number(shown.length)} of ${all}` : sentenceCase(all);
  return html`<${Stale} answer=${types} /><${Missed} data=${stats.data} />
    <${Panel} title=${title} note=${`p99: of first starts in the last 10 to 25 minutes${hours.isCut ? `; done: of ${hours.span}` : ''}`} actions=${html`${rows.length > kMany && html`<input class="small" type="search" aria-label="Find a type" placeholder="Find a type" value=${text} onInput=${(e) => setText(e.target.value)} />
      <${Segments} label="Order" value=${order} onChange=${setOrder} options=${[['name', 'By name'], ['urgency', 'Most urgent']]} />`}<${TableCsv} name="Types" columns=${kColumns} rows=${shown} />`}>
    ${shown.length === 0 ? html`<p class="muted">No type has this in its name.</p>` : html`<${Table} caption="Types" rows=${shown.slice(0, kMostRows)} rowKey=${(r) => r.type.name} columns=${kColumns.filter((c) => c.cell)} />`}<//>`;
}

// Usual ends of a pause.
function presets() {
  const now = new Date(), hour = 3_600_000;
  const nine = [0, 1].map((days) => new Date(Number(plusDays(startOfDay(now), days)) + 9 * hour)).find((at) => at > now);
  return [['in 1 hour', new Date(Number(now) + hour)], ['in 4 hours', new Date(Number(now) + 4 * hour)], [`at 09:00 ${zoneName()}`, nine]];
}

function PauseDialog({name, onClose, reload}) {
  const [until, setUntil] = useState('');
  const [reason, setReason] = useState('');
  const action = useAction();
  const body = until || reason ? {...(until && {until: fromInput(until)}), ...(reason && {reason})} : undefined;
  const pause = async () => {
    if (await action.run(() => call('POST', path(name, 'pause'), body), `${name} is paused.`)) {
      reload();
      onClose();
    }
  };
  return html`<${Dialog} title=${`Pause ${name}`} onClose=${onClose}>
    <p>Its jobs stay pending and fire after it is resumed. What runs now is not touched.</p>
    <${Field} label=${`Until (${zoneName()}); empty: until it is resumed`}><input type="datetime-local" step="1" value=${until} onInput=${(e) => setUntil(e.target.value)} /><//>
    <div class="buttons">${presets().map(([text, at]) => html`<button class="small" onClick=${() => setUntil(toInput(at.toISOString()))}>${text}</button>`)}
      <button class="small" onClick=${() => setUntil('')}>until it is resumed</button></div>
    <${Field} label="Reason, for the audit log"><input value=${reason} maxlength="200" onInput=${(e) => setReason(e.target.value)} /><//>
    <${Problem} text=${action.problem} />
    <div class="buttons"><button class="primary" disabled=${action.isBusy} onClick=${pause}>Pause</button><button onClick=${onClose}>Not now</button></div>
    <${Curl} text=${curl('POST', path(name, 'pause'), body)} /><//>`;
}

/** Lines of both texts: [[' ' | '-' | '+', line]] by the longest common subsequence. */
export function difference(before, after) {
  const a = before.split('\n'), b = after.split('\n');
  const best = Array.from({length: a.length + 1}, () => new Array(b.length + 1).fill(0));
  for (let i = a.length - 1; i >= 0; --i)
    for (let j = b.length - 1; j >= 0; --j) best[i][j] = a[i] === b[j] ? best[i + 1][j + 1] + 1 : Math.max(best[i + 1][j], best[i][j + 1]);
  const lines = [];
  for (let i = 0, j = 0; i < a.length || j < b.length;) {
    if (i < a.length && j < b.length && a[i] === b[j]) lines.push([' ', a[i++], j++]);
    else if (j >= b.length || (i < a.length && best[i + 1][j] >= best[i][j + 1])) lines.push(['-', a[i++]]);
    else lines.push(['+', b[j++]]);
  }
  return lines;
}

const kReadOnly = ['name', 'paused', 'paused_until', 'gmt_create', 'gmt_modified', 'type_id', 'version'];
const editable = (type) => JSON.stringify(Object.fromEntries(Object.entries(type).filter(([key]) => !kReadOnly.includes(key))), null, 2);

// PUT with If-Match: the node refuses it (412) if another client has changed the type since the dialog was opened.
async function replace(type, body) {
  try {
    return await call('PUT', path(type.name), body, {ifMatch: `"${type.gmt_modified}"`});
  } catch (refused) {
    if (refused.status === 412) refused.message = 'The type has been changed since this dialog was opened: close it and open it again.';
    throw refused;
  }
}

function EditDialog({type, onClose, reload}) {
  const [stored, setStored] = useState(type); // the version that is edited; `type` itself is read again all the time
  const before = useMemo(() => editable(stored), [stored]);
  const [text, setText] = useState(before);
  const [isReview, setReview] = useState(false);
  const [isChanged, setChanged] = useState(false);
  const action = useAction();
  let mistake = '';
  try {
    JSON.parse(text);
  } catch (error) {
    mistake = error.message;
  }
  const save = async () => {
    setChanged(false);
    if (await action.run(() => replace(stored, text).catch(async (refused) => {
      if (refused.status !== 412) throw refused;
      setStored((await call('GET', path(type.name))).data);
      setChanged(true);
      throw refused;
    }), `${type.name} is changed.`)) {
      reload();
      onClose();
    }
  };
  return html`<${Dialog} title=${`${isReview ? 'Review' : 'Edit'} ${type.name}`} onClose=${onClose} isKept=${text !== before}>
    ${isReview ? html`<div class="diff" role="group" tabindex="0" aria-label="Changes">${difference(before, text).map(([mark, line]) =>
      html`<div class=${mark === '+' ? 'add' : mark === '-' ? 'del' : ''}>${mark} ${line}</div>`)}</div>` : html`
      <p class="muted">*** stands for a stored secret; left unchanged, it keeps that secret.</p>
      <${Field} label="Settings (JSON)"><textarea spellcheck="false" value=${text} onInput=${(e) => setText(e.target.value)}></textarea><//>
      ${mistake && html`<${Problem} text=${`This is not JSON yet: ${mistake}`} />`}`}
    ${isChanged ? html`<${Problem} text="The type has been changed meanwhile by another user. Lines marked - are as they are stored now: take over what you want to keep, and save again." />` :
      html`<${Problem} text=${action.problem} />`}
    <div class="buttons">${isReview ? html`<button class="primary" disabled=${action.isBusy} onClick=${save}>Save these changes</button><button onClick=${() => setReview(false)}>Back</button>` :
      html`<button class="primary" disabled=${Boolean(mistake) || text === before} onClick=${() => setReview(true)}>Review changes</button>`}
      <button onClick=${onClose}>Discard</button></div><//>`;
}

// The two numbers that an operator turns most, without the rest of the settings.
function LimitsDialog({type, onClose, reload}) {
  const opened = useMemo(() => type, []);
  const before = useMemo(() => ({max_running: type.max_running ?? '', rate_per_s: type.rate_per_s ?? ''}), []);
  const [form, setForm] = useState(before);
  const action = useAction();
  const set = (name) => (event) => setForm({...form, [name]: event.target.value});
  const limit = (text) => (String(text).trim() === '' ? null : Number(text));
  const save = async () => {
    const body = {...JSON.parse(editable(opened)), max_running: limit(form.max_running), rate_per_s: limit(form.rate_per_s)};
    if (await action.run(() => replace(opened, body), `The limits of ${type.name} are changed.`)) {
      reload();
      onClose();
    }
  };
  const isSame = String(form.max_running) === String(before.max_running) && String(form.rate_per_s) === String(before.rate_per_s);
  return html`<${Dialog} title=${`Limits of ${type.name}`} onClose=${onClose}>
    <p>They hold for all nodes together. Empty means no limit. What runs now is not touched.</p>
    <div class="form">${hasRuns(type) && html`<${Field} label="Running at once (max_running)"><input type="number" min="1" value=${form.max_running} onInput=${set('max_running')} /><//>`}
      <${Field} label="Starts per second (rate_per_s)"><input type="number" min="0" step="any" value=${form.rate_per_s} onInput=${set('rate_per_s')} /><//></div>
    <${Problem} text=${action.problem} />
    <div class="buttons"><button class="primary" disabled=${isSame || action.isBusy} onClick=${save}>Set the limits</button><button onClick=${onClose}>Not now</button></div><//>`;
}

function TestDialog({type, onClose}) {
  const {name} = type;
  const [attribute, setAttribute] = useState('{"test": true}');
  const [id, setId] = useState('');
  const action = useAction();
  const key = useMemo(() => `test-${Date.now()}`, []);
  const create = () => action.run(async () => {
    const body = `{"biz_type": ${JSON.stringify(name)}, "biz_id": ${JSON.stringify(key)}, "delay_ms": 0, "max_attempts": 1, "attribute": ${attribute}}`;
    const {data} = await call('POST', 'v1/jobs', body);
    setId(data.job_id);
    return `Job ${data.job_id} is created.`;
  });
  return html`<${Dialog} title=${`Test call of ${name}`} onClose=${onClose}>
    <p>A real job with the key <code>${key}</code>, due now and tried once: ${type.paused ? 'it waits until the type is resumed.' : type.handler.kind === 'pull' ? 'it waits until a consumer leases it.' : 'its handler is called as for any other, signature and all.'}</p>
    <${Field} label="Attribute (JSON)"><textarea class="short" spellcheck="false" value=${attribute} onInput=${(e) => setAttribute(e.target.value)}></textarea><//>
    <${Problem} text=${action.problem} />
    <div class="buttons">${id ? html`<a href=${link('job', {id})} onClick=${onClose}>See what became of job ${id}</a>` : html`<button class="primary" disabled=${action.isBusy} onClick=${create}>Create the job</button>`}
      <button onClick=${onClose}>Close</button></div><//>`;
}

function Settings({type}) {
  const h = type.handler, b = type.backoff || {}, slo = type.slo, catchUp = type.catch_up || {};
  const rows = [
    ['Handler', html`${h.kind} ${h.url ? html`<code>${h.url}</code>` : h.function ? html`<code>${h.function}</code>` : ''}`],
    ['Time to run', length(type.ttr_ms)],
    ['Attempts', html`${number(type.max_attempts)}${b.delays_ms ? `, after ${b.delays_ms.map(length).join(', ')}` : b.base_ms ? `, pauses from ${length(b.base_ms)} up to ${length(b.max_ms)}` : ''}`],
    ['Target', slo ? `${percent(slo.share, 2)} within ${length(slo.lateness_ms)}` : 'none'],
    ...(hasRuns(type) ? [['Running at once', type.max_running ? `at most ${number(type.max_running)}` : 'no limit']] : []),
    ['Rate', type.rate_per_s ? `at most ${number(type.rate_per_s)} per second` : 'no limit'],
    ['After an outage', html`${catchUp.drop_older_than_ms ? `drops what is older than ${length(catchUp.drop_older_than_ms)}` : 'runs everything'}${catchUp.rate_per_s ? `, ${number(catchUp.rate_per_s)} per second` : ''}`],
    ['Changed', html`${moment(type.gmt_modified)} ${zoneName()}`],
  ];
  return html`<table class="keys"><caption class="visually-hidden">Settings</caption><tbody>${rows.map(([key, value]) => html`<tr><th scope="row">${key}</th><td>${value}</td></tr>`)}</tbody></table>`;
}

const kRest = {
  max_running: ['It waits for its limit max_running.', 'Raise it under Limits, or make its handler faster.'],
  catch_up: ['Jobs found late start at its catch_up.rate_per_s.', 'Raise it under Edit, or let it catch up.'],
  rate_per_s: ['It waits for its rate_per_s.', 'Raise it under Limits, or let it catch up.'],
  consumers: ['No consumer asks for its jobs, or not fast enough.', 'Start consumers, or more of them.'],
  workers: ['Its handler does not take jobs as fast as they come due.', 'See the errors and durations of its latest jobs.'],
};
const kBehind = 5000; // ms: what has been due for less is about to start
const kManyRetries = 10; // in the last minutes, as in the verdict of the overview: fewer are no reason for alarm

/** What is wrong with a type, and what helps. */
function state(type, counts, due, slo, recent, endpoint) {
  const points = [], waiting = due ? Number(due.due) : 0, p99 = recent?.p99_ms ?? null;
  const isFailing = recent && recent.retried >= kManyRetries && recent.retried > recent.done;
  if (type.paused)
    return {kind: 'warn', text: `Paused${type.paused_until ? ` until ${moment(type.paused_until)} ${zoneName()}` : ' until it is resumed'}.`, more: waiting > 0 ? `${sentenceCase(capped(waiting, due.is_exact))} ${waiting === 1 ? 'job is' : 'jobs are'} overdue and wait for it, the oldest for ${roughly(due.oldest_age_ms)}.` : 'Nothing waits for it yet.'};
  if (endpoint)
    points.push([`Its endpoint ${endpoint.endpoint} ${endpoint.state === 'paused' ? 'gets a pause' : 'gets one attempt at a time'}: it has not answered.`, endpoint.last_error ? `Last error: ${endpoint.last_error}.` : '']);
  if (waiting > 0 && Number(due.oldest_age_ms) > kBehind && points.length === 0)
    points.push(kRest[due.waits_for] || kRest.workers);
  if (isFailing)
    points.push([`${number(recent.retried)} attempts of the last minutes failed and are tried again; ${number(recent.done)} ${recent.done === 1 ? 'job was' : 'jobs were'} done.`, counts.pending > 0 ? html`<a href=${link('jobs', {biz_type: type.name, status: 'pending'})}>Its pending jobs</a> say why, and wait for their next attempt.` : '']);
  if (isLate(p99, type)) points.push([`Its p99 of lateness in the last minutes is ${length(p99)}; its target is ${length(type.slo.lateness_ms)}.`, '']);
  if (slo && slo.is_met === false) points.push([`${number(slo.missed)} of ${number(slo.n)} jobs of the last ${slo.days} days missed the target; allowed are ${number(Math.floor(slo.n * (1 - slo.target_share) + 1e-6))}.`, '']);
  if (counts.dead > 0) points.push([`${number(counts.dead)} ${counts.dead === 1 ? 'job is' : 'jobs are'} dead.`, html`<a href=${link('dead', {type: type.name})}>Reasons, and replay</a>`]);
  const behind = waiting > 0 && Number(due.oldest_age_ms) > kBehind;
  if (points.length === 0) return {kind: 'good', text: 'On time.', more: 'No job of it is due and waits to start.'};
  return {kind: behind ? 'warn' : slo && slo.is_met === false ? 'warn' : counts.dead > 0 || points.length ? 'warn' : 'good', text: behind ? `${sentenceCase(capped(waiting, due.is_exact))} overdue, the oldest for ${roughly(due.oldest_age_ms)}.` : isFailing ? 'Its attempts fail.' : 'Nothing is overdue, but:', points};
}

function Ahead({name}) {
  const {answer, items, names, isCut} = useHorizon('hour', name);
  const capacity = useCapacity(name);
  return html`<${Panel} title="Horizon" note=${`seven days, by hour${isCut ? '; the far end is left out' : ''}`}>${!answer.data ? html`<${Missing} answer=${answer} what="The horizon" tall />` : items.length === 0 ? html`<p class="reading tall">Nothing is due in the next seven days, as far as it has been counted.</p>` :
    html`<${Bars} caption="Jobs due by hour" items=${items} names=${names} width="hour" limit=${capacityOf('hour', capacity)} />`}<//>`;
}

function Failing({name}) {
  const list = useGet(`v1/jobs?biz_type=${encodeURIComponent(name)}&status=dead&limit=5`, {every: 3});
  const rows = (list.data && list.data.items) || [];
  return html`<${Panel} title="Latest deaths" actions=${rows.length > 0 && html`<a class="quiet-link small-text" href=${link('dead', {type: name})}>All dead letters of this type</a>`}>
    ${!list.data ? html`<${Missing} answer=${list} what="The list" />` : rows.length === 0 ? html`<p class="muted">None of its jobs is dead.</p>` :
      html`<${Table} caption="Latest deaths" rows=${rows} rowKey=${(j) => j.job_id} columns=${[
        {label: `When (${zoneName()})`, cell: (j) => html`<span class="nowrap">${moment(j.finished_at)}</span>`},
        {label: 'Key', cell: (j) => html`<${JobLink} id=${j.job_id}><${Foreign} text=${j.biz_id} clip /><//>`},
        {label: 'Last error', cell: (j) => html`<${Foreign} text=${j.errors.length ? j.errors[j.errors.length - 1].message : ''} />`}]} />`}<//>`;
}

function One({name}) {
  const type = useGet(path(name), {every: 2}), stats = useGet('v1/stats'), hours = useHours(48, name);
  const slo = useByType('slo', 12, name), backlog = useByType('backlog', 2, name), recent = useByType('recent', 2, name), endpoints = useGet('v1/endpoints?limit=1000', {every: 2});
  const [open, setOpen] = useState('');
  const action = useAction();
  const course = useMemo(() => courses(hours.data, kHours).get(name), [hours.data]);
  if (!type.data) return html`<${Title} text=${name} /><${Panel} title=${name}><${Missing} answer=${type} what="The type" tall /><//>`;
  const find = (answer, key) => ((answer.data && answer.data.items) || []).find((row) => row[key] === name);
  const counts = find(stats, 'biz_type') || {}, due = find(backlog, 'biz_type'), met = find(slo, 'biz_type'), late = find(recent, 'biz_type'), p99 = late?.p99_ms ?? null;
  const endpoint = ((endpoints.data && endpoints.data.items) || []).find((each) => each.endpoint === target(type.data) && (each.state === 'paused' || each.state === 'trying'));
  const resume = () => action.run(() => call('POST', path(name, 'resume')), `${name} fires again.`).then(type.reload);
  const close = () => setOpen('');
  const jobs = (status) => html`<a href=${link('jobs', {biz_type: name, status})}>${short(counts[status])}</a>`;
  return html`<${Title} text=${name}><${Paused} type=${type.data} /><a class="quiet-link" href=${link('types')}>All types</a><span class="grow"></span><div class="buttons">
      ${may('manage') && (type.data.paused ? html`<button class="primary" disabled=${action.isBusy} onClick=${resume}>Resume</button>` : html`<button onClick=${() => setOpen('pause')}>Pause…</button>`)}
      ${may('manage') && html`<button onClick=${() => setOpen('limits')}>Limits…</button><button onClick=${() => setOpen('edit')}>Edit…</button>`}
      ${may('produce') && html`<button onClick=${() => setOpen('test')}>Test call…</button>`}</div><//>
    <${Problem} text=${action.problem} /><${Stale} answer=${type} /><${Missed} data=${stats.data} />
    <${Verdict} ...${backlog.data && stats.data ? state(type.data, counts, due, met, late, endpoint) : {kind: 'quiet', text: 'Reading…', more: ' '}} />
    <${Tiles} items=${[
      ['Pending', jobs('pending'), `${capped(due?.due ?? 0, due?.is_exact)} overdue`],
      ['Running', jobs('running'), type.data.max_running && hasRuns(type.data) ? ofLimit(counts.running ?? 0, type.data.max_running) : 'no limit'],
      ['Done', jobs('done'), `${number(course?.sum ?? 0)} in 24 h`],
      ['Dead now', jobs('dead'), `${number(counts.cancelled)} cancelled`],
      ['Lateness p99', roughly(p99), type.data.slo ? `target ${length(type.data.slo.lateness_ms)}` : 'no target'],
      ['In time, 30 days', met ? percent(met.share, 2) : '–', met ? (met.budget_left >= 0 ? `${percent(met.budget_left, 0)} budget left` : 'budget used up') : 'no target'],
    ]} />
    <div class="columns even"><${Charts} hours=${hours} target=${type.data.slo ? type.data.slo.lateness_ms : 0} /></div>
    <div class="columns"><${Ahead} name=${name} /><div class="column"><${Failing} name=${name} />
      <${Panel} title="Settings"><${Settings} type=${type.data} /><details><summary>As JSON</summary><pre>${JSON.stringify(type.data, null, 2)}</pre></details><//></div></div>
    <${Panel} title="Commands"><div class="curls"><${Curl} label="a job of this type, due in a minute" text=${curl('POST', 'v1/jobs', {biz_type: name, biz_id: 'order-42', delay_ms: 60000})} />
      <${Curl} label="pause" text=${curl('POST', path(name, 'pause'))} /><${Curl} label="resume" text=${curl('POST', path(name, 'resume'))} /><${Curl} label="its settings" text=${curl('GET', path(name))} /></div><//>
    ${open === 'pause' && html`<${PauseDialog} name=${name} onClose=${close} reload=${type.reload} />`}
    ${open === 'limits' && html`<${LimitsDialog} type=${type.data} onClose=${close} reload=${type.reload} />`}
    ${open === 'edit' && html`<${EditDialog} type=${type.data} onClose=${close} reload=${type.reload} />`}
    ${open === 'test' && html`<${TestDialog} type=${type.data} onClose=${close} />`}`;
}

export function Types() {
  const name = useShared().query.get('type');
  return name ? html`<${One} key=${name} name=${name} />` : html`<${Title} text="Types" /><${All} />`;
}

// The kinds of timeout: what they hold, how they do, and their settings.
import {html, useMemo, useState} from '../vendor/preact.js';
import {fromInput, length, moment, number, percent, zoneName} from '../format.js';
import {call, curl, useGet} from '../rest.js';
import {link, may, useShared} from '../state.js';
import {Badge, Curl, Dialog, Empty, Field, Good, Missed, Missing, Panel, Problem, Stale, Table, Title, TypeLink, useAction} from '../ui.js';

const path = (name, verb = '') => `v1/types/${encodeURIComponent(name)}${verb && '/' + verb}`;

const Paused = ({type}) => (type.paused ?
  html`<${Badge} icon="❚❚" kind="warn">paused${type.paused_until ? ` until ${moment(type.paused_until)}` : ''}<//>` :
  html`<${Badge} icon="▶" kind="good">fires<//>`);

function useRows() {
  const types = useGet('v1/types?limit=1000', {every: 2}), stats = useGet('v1/stats'), slo = useGet('v1/reports/slo', {every: 12});
  const backlog = useGet('v1/reports/backlog', {every: 2});
  const rows = useMemo(() => {
    const by = (data) => new Map(((data && data.items) || []).map((row) => [row.biz_type, row]));
    const counts = by(stats.data), met = by(slo.data), due = by(backlog.data);
    return ((types.data && types.data.items) || []).map((type) => ({type, counts: counts.get(type.name) || {}, slo: met.get(type.name), due: due.get(type.name)}));
  }, [types.data, stats.data, slo.data, backlog.data]);
  return {types, stats, rows};
}

function All() {
  const {types, stats, rows} = useRows();
  if (!types.data) return html`<${Panel} title="Types"><${Missing} answer=${types} what="The list of types" /><//>`;
  if (rows.length === 0)
    return html`<${Panel} title="Types"><${Empty} method="PUT" path="v1/types/order.unpaid" body=${{handler: {kind: 'webhook', url: 'http://127.0.0.1:9000/hook'}, max_attempts: 16, slo: {lateness_ms: 1000, share: 0.999}}}>
      There is no type yet. A type says what happens at the deadline, how often it is tried, and how late it may be:<//><//>`;
  return html`<${Stale} answer=${types} /><${Missed} data=${stats.data} /><${Panel} title=${`${rows.length} types`}>
    <${Table} caption="Types" rows=${rows} rowKey=${(r) => r.type.name} columns=${[
      {label: 'Type', cell: (r) => html`<${TypeLink} name=${r.type.name} />`},
      {label: 'State', cell: (r) => html`<${Paused} type=${r.type} />`},
      {label: 'Handler', cell: (r) => r.type.handler.kind},
      {label: 'Pending', isNumber: true, cell: (r) => number(r.counts.pending)},
      {label: 'Overdue', isNumber: true, cell: (r) => (r.due ? number(r.due.due) : '–')},
      {label: 'Running', isNumber: true, cell: (r) => html`${number(r.counts.running)}${r.type.max_running ? html`<span class="muted"> of ${number(r.type.max_running)}</span>` : ''}`},
      {label: 'Rate limit', unit: '1/s', isNumber: true, cell: (r) => (r.type.rate_per_s ? number(r.type.rate_per_s) : 'none')},
      {label: 'Done', isNumber: true, cell: (r) => number(r.counts.done)},
      {label: 'Dead', isNumber: true, cell: (r) => (r.counts.dead ? html`<a href=${link('dead', {type: r.type.name})}>${number(r.counts.dead)}</a>` : '0')},
      {label: 'Target', cell: (r) => (r.slo && typeof r.slo.is_met === 'boolean' ? html`<${Good} is=${r.slo.is_met} yes=${percent(r.slo.share)} no=${percent(r.slo.share)} />` : '–')},
    ]} /><//>`;
}

function PauseDialog({name, onClose, reload}) {
  const [until, setUntil] = useState('');
  const action = useAction();
  const body = until ? {until: fromInput(until)} : undefined;
  const pause = async () => {
    if (await action.run(() => call('POST', path(name, 'pause'), body), `${name} is paused.`)) {
      reload();
      onClose();
    }
  };
  return html`<${Dialog} title=${`Pause ${name}`} onClose=${onClose}>
    <p>Its jobs stay pending and fire after it is resumed. What runs now is not touched.</p>
    <${Field} label=${`Until (${zoneName()}); empty: until it is resumed`}><input type="datetime-local" step="1" value=${until} onInput=${(e) => setUntil(e.target.value)} /><//>
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

function EditDialog({type, onClose, reload}) {
  const before = useMemo(() => editable(type), []);
  const [text, setText] = useState(before);
  const [isReview, setReview] = useState(false);
  const action = useAction();
  let mistake = '';
  try {
    JSON.parse(text);
  } catch (error) {
    mistake = error.message;
  }
  const save = async () => {
    if (await action.run(() => call('PUT', path(type.name), text), `${type.name} is changed.`)) {
      reload();
      onClose();
    }
  };
  return html`<${Dialog} title=${`${isReview ? 'Review' : 'Edit'} ${type.name}`} onClose=${onClose}>
    ${isReview ? html`<div class="diff" role="group" tabindex="0" aria-label="Changes">${difference(before, text).map(([mark, line]) =>
      html`<div class=${mark === '+' ? 'add' : mark === '-' ? 'del' : ''}>${mark} ${line}</div>`)}</div>` : html`
      <p class="muted">*** stands for a secret that is stored; as it is, it stays.</p>
      <${Field} label="Settings (JSON)"><textarea spellcheck="false" value=${text} onInput=${(e) => setText(e.target.value)}></textarea><//>
      ${mistake && html`<${Problem} text=${`This is no JSON yet: ${mistake}`} />`}`}
    <${Problem} text=${action.problem} />
    <div class="buttons">${isReview ? html`<button class="primary" disabled=${action.isBusy} onClick=${save}>Save these changes</button><button onClick=${() => setReview(false)}>Back</button>` :
      html`<button class="primary" disabled=${Boolean(mistake) || text === before} onClick=${() => setReview(true)}>Review changes</button>`}
      <button onClick=${onClose}>Discard</button></div><//>`;
}

function TestDialog({name, onClose}) {
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
    <p>A real job with the key <code>${key}</code>, due now and tried once: its handler is called as for any other, signature and all.</p>
    <${Field} label="Attribute (JSON)"><textarea spellcheck="false" value=${attribute} onInput=${(e) => setAttribute(e.target.value)}></textarea><//>
    <${Problem} text=${action.problem} />
    <div class="buttons">${id ? html`<a href=${link('job', {id})} onClick=${onClose}>See what became of job ${id}</a>` : html`<button class="primary" disabled=${action.isBusy} onClick=${create}>Create the job</button>`}
      <button onClick=${onClose}>Close</button></div><//>`;
}

function Settings({type}) {
  const h = type.handler, b = type.backoff || {}, slo = type.slo, catchUp = type.catch_up || {};
  const rows = [
    ['Handler', html`${h.kind} ${h.url ? html`<code>${h.url}</code>` : h.function ? html`<code>${h.function}</code>` : ''}`],
    ['Time to run', length(type.ttr_ms)],
    ['Attempts', html`${number(type.max_attempts)}${b.delays_ms ? `, after ${b.delays_ms.map(length).join(', ')}` : b.base_ms ? `, from ${length(b.base_ms)} up to ${length(b.max_ms)}` : ''}`],
    ['Target', slo ? `${percent(slo.share, 2)} within ${length(slo.lateness_ms)}` : 'none'],
    ['Running at once', type.max_running ? number(type.max_running) : 'no limit'],
    ['Rate', type.rate_per_s ? `${number(type.rate_per_s)} per second` : 'no limit'],
    ['After an outage', html`${catchUp.drop_older_than_ms ? `drops what is older than ${length(catchUp.drop_older_than_ms)}` : 'runs everything'}${catchUp.rate_per_s ? `, ${number(catchUp.rate_per_s)} per second` : ''}`],
  ];
  return html`<table class="keys"><caption class="visually-hidden">Settings</caption><tbody>${rows.map(([key, value]) => html`<tr><th scope="row">${key}</th><td>${value}</td></tr>`)}</tbody></table>`;
}

function One({name}) {
  const type = useGet(path(name), {every: 2}), stats = useGet('v1/stats');
  const [open, setOpen] = useState('');
  const action = useAction();
  if (!type.data) return html`<${Panel} title=${name}><${Missing} answer=${type} what="The type" /><//>`;
  const counts = ((stats.data && stats.data.items) || []).find((row) => row.biz_type === name) || {};
  const resume = () => action.run(() => call('POST', path(name, 'resume')), `${name} fires again.`).then(type.reload);
  const close = () => setOpen('');
  return html`<${Stale} answer=${type} /><${Panel} title="State" actions=${html`<div class="buttons">
      ${may('manage') && (type.data.paused ? html`<button class="primary" disabled=${action.isBusy} onClick=${resume}>Resume</button>` : html`<button onClick=${() => setOpen('pause')}>Pause…</button>`)}
      ${may('manage') && html`<button onClick=${() => setOpen('edit')}>Edit…</button>`}
      ${may('produce') && html`<button onClick=${() => setOpen('test')}>Test call…</button>`}</div>`}>
      <p><${Paused} type=${type.data} /></p>
      <p>${['pending', 'running', 'done', 'cancelled', 'dead'].map((status, i) => html`${i ? ' · ' : ''}<a href=${link('jobs', {biz_type: name, status})}>${number(counts[status])} ${status}</a>`)}</p>
      <${Problem} text=${action.problem} /><//>
    <${Panel} title="Settings"><${Settings} type=${type.data} /><details><summary>As JSON</summary><pre>${JSON.stringify(type.data, null, 2)}</pre></details><//>
    <${Panel} title="Commands"><div class="stack"><${Curl} label="a job of this type, due in a minute" text=${curl('POST', 'v1/jobs', {biz_type: name, biz_id: 'order-42', delay_ms: 60000})} />
      <${Curl} label="pause" text=${curl('POST', path(name, 'pause'))} /><${Curl} label="resume" text=${curl('POST', path(name, 'resume'))} /></div><//>
    ${open === 'pause' && html`<${PauseDialog} name=${name} onClose=${close} reload=${type.reload} />`}
    ${open === 'edit' && html`<${EditDialog} type=${type.data} onClose=${close} reload=${type.reload} />`}
    ${open === 'test' && html`<${TestDialog} name=${name} onClose=${close} />`}`;
}

export function Types() {
  const name = useShared().query.get('type');
  return name ? html`<${Title} text=${name}><a href=${link('types')}>All types</a><//><${One} key=${name} name=${name} />` : html`<${Title} text="Types" /><${All} />`;
}

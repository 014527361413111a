// One action for all jobs that match: first a count, then the change, with its progress and a stop.
import {html, useEffect, useState} from './vendor/preact.js';
import {length, moment, number, zoneName} from './format.js';
import {call, curl, useGet} from './rest.js';
import {change, may, useShared} from './state.js';
import {Curl, Dialog, Field, Foreign, Problem, Stale, useAction} from './ui.js';

// What an action is called, and the state of the jobs that it changes.
export const kBulkActions = {
  cancel: ['Cancel', 'pending'], run: ['Run now', 'pending'], reschedule: ['Reschedule', 'pending'], retry: ['Retry', 'dead'],
};
const kNames = {biz_id: 'key', biz_type: 'type', status: 'state', from: 'due from', to: 'due before'};
const kTyped = 1000; // above it the count is typed

const compact = (object) => Object.fromEntries(Object.entries(object).filter(([, value]) => value !== '' && value !== undefined && value !== null));

function bodyOf(form, filter) {
  const action = form.action;
  const wanted = compact({...filter, status: filter.status || kBulkActions[action][1]});
  if (filter.reason === '') wanted.reason = ''; // the group of those that died without one
  const body = {action, filter: wanted, reason: form.reason, rate_per_s: form.rate ? Number(form.rate) : undefined};
  if (action === 'reschedule' && form.delay !== '') body.delay_ms = Math.round(Number(form.delay) * 60_000);
  if (action === 'reschedule' && form.spread) body.spread_ms = Math.round(Number(form.spread) * 60_000);
  return compact(body);
}

export function Progress({id, onClose}) {
  const [isOver, setOver] = useState(false);
  const bulk = useGet(`v1/bulk/${id}`, isOver ? {every: 0} : {seconds: 1});
  const action = useAction();
  const b = bulk.data;
  const hasEnded = Boolean(b && b.state !== 'running');
  useEffect(() => setOver(hasEnded), [hasEnded]);
  if (!b) return html`<p class="muted">Starting…</p>`;
  const tried = Number(b.changed) + (b.state === 'stopped' ? 0 : Number(b.missed)); // those that a stop left were not tried
  return html`<${Stale} answer=${bulk} /><p role="status"><strong>${hasEnded ? `Ended: ${b.state}.` : 'Running.'}</strong> ${number(b.changed)} of ${number(b.matched)} changed, ${number(b.missed)} ${b.state === 'stopped' ? 'were left as they were' : 'were in another state by then'}.</p>
    <progress aria-label="Progress" max=${Math.max(Number(b.matched), 1)} value=${tried}></progress>
    ${hasEnded && b.finished_at && html`<p class="muted">It took ${length(new Date(b.finished_at) - new Date(b.started_at))}. Its id is <code>${id}</code>.</p>`}
    <${Problem} text=${b.error || action.problem} />
    <div class="buttons">${!hasEnded && html`<button class="danger" disabled=${action.isBusy} onClick=${() => action.run(() => call('POST', `v1/bulk/${id}/stop`), 'It stops after the current batch.').then(bulk.reload)}>Stop</button>`}
      <button onClick=${() => onClose(hasEnded)}>${hasEnded ? 'Close' : 'Close (continues)'}</button></div>`;
}

export function BulkDialog({filter, actions, onClose, rate = ''}) {
  const [form, setForm] = useState({action: actions[0], reason: '', rate, delay: '', spread: '', typed: ''});
  const [matched, setMatched] = useState(null);
  const [id, setId] = useState('');
  const action = useAction();
  const set = (name) => (event) => {
    setForm({...form, [name]: event.target.value});
    if (name !== 'typed' && name !== 'reason') setMatched(null);
  };
  const body = bodyOf(form, filter);
  const preview = () => action.run(async () => {
    const {data} = await call('POST', 'v1/bulk', {...body, dry_run: true});
    setMatched(data.matched);
  });
  const start = () => action.run(async () => {
    try {
      const {data} = await call('POST', 'v1/bulk', {...body, expected: matched});
      setId(data.bulk_id);
    } catch (error) {
      if (error.status === 409) setMatched(null);
      throw error;
    }
  });
  const needsTyping = matched > kTyped && form.typed.trim() !== String(matched);
  const word = actions.length === 1 && form.action === 'retry' ? 'Replay' : kBulkActions[form.action][0];
  const leave = (hasEnded) => {
    if (hasEnded !== true) change({bulk: id}); // the frame watches it from now on
    onClose();
  };
  if (id) return html`<${Dialog} title=${`${word}: ${number(matched)} jobs`} onClose=${leave}><${Progress} id=${id} onClose=${leave} /><//>`;
  return html`<${Dialog} title=${actions.length === 1 ? `${word} all that match` : 'Change all that match'} onClose=${onClose}>
    <div class="chips">${Object.entries(body.filter).map(([name, value]) => html`<span class="chip">${kNames[name] || name}: <${Foreign} text=${/^(from|to)$/.test(name) ? `${moment(value)} ${zoneName()}` : value === '' ? 'none given' : value} mono=${false} /></span>`)}</div>
    <div class="form">
      ${actions.length > 1 && html`<${Field} label="Action"><select value=${form.action} onChange=${set('action')}>${actions.map((name) => html`<option value=${name}>${kBulkActions[name][0]}</option>`)}</select><//>`}
      ${form.action === 'reschedule' && html`<${Field} label="Due in (minutes)"><input type="number" min="0" value=${form.delay} onInput=${set('delay')} /><//>
        <${Field} label="Spread over (minutes)"><input type="number" min="0" value=${form.spread} onInput=${set('spread')} /><//>`}
      <${Field} label="At most per second"><input type="number" min="1" placeholder="no limit" value=${form.rate} onInput=${set('rate')} /><//>
    </div>
    <${Field} label="Reason, for the audit log"><input value=${form.reason} maxlength="200" onInput=${set('reason')} /><//>
    ${matched !== null && html`<p role="status"><strong>${number(matched)}</strong> jobs match now. ${matched > 0 ? 'If the count changes before the start, nothing is done.' : ''}</p>`}
    ${matched > kTyped && html`<${Field} label=${`Type ${matched} to confirm`}><input inputmode="numeric" autocomplete="off" value=${form.typed} onInput=${set('typed')} /><//>`}
    <${Problem} text=${action.problem} />
    <div class="buttons"><button class=${matched === null ? 'primary' : ''} disabled=${action.isBusy} onClick=${preview}>Preview</button>
      ${matched !== null && html`<button class=${form.action === 'cancel' ? 'danger' : 'primary'} disabled=${action.isBusy || matched === 0 || needsTyping} onClick=${start}>${word} ${number(matched)} jobs</button>`}
      <button onClick=${onClose}>Close</button></div>
    <details><summary>As a command</summary><${Curl} label="count" text=${curl('POST', 'v1/bulk', {...body, dry_run: true})} />
      ${matched !== null && html`<${Curl} label="start" text=${curl('POST', 'v1/bulk', {...body, expected: matched})} />`}</details><//>`;
}

/** A bulk change whose dialog was closed: how far it is, on every screen. */
export function BulkWatch() {
  const id = useShared().bulk;
  const [isOpen, setOpen] = useState(false);
  const bulk = useGet(id ? `v1/bulk/${id}` : '', {seconds: 2});
  const b = bulk.data;
  if (!id || !b || !may('produce')) return html`<div class="place"></div>`;
  const close = (hasEnded) => {
    setOpen(false);
    if (hasEnded === true) change({bulk: ''});
  };
  return html`<div class="note quiet buttons" role="status"><span class="body"><strong>Bulk change ${id}</strong> (${b.action}) ${b.state === 'running' ? 'is running' : `has ended: ${b.state}`}: ${number(b.changed)} of ${number(b.matched)} changed.</span>
    <span class="grow"></span>${b.state === 'running' ? html`<button class="small" onClick=${() => setOpen(true)}>Show…</button>` : html`<button class="small" onClick=${() => close(true)}>Dismiss</button>`}
    ${isOpen && html`<${Dialog} title=${`Bulk change ${id}`} onClose=${close}><${Progress} id=${id} onClose=${close} /><//>`}</div>`;
}

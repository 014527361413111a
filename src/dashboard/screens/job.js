// One job: where it stands, how it came there, and what can be done.
import {html, useMemo, useState} from '../vendor/preact.js';
import {away, dayOf, fromInput, inZone, length, number, toInput, zoneName} from '../format.js';
import {call, curl, memberText, query, useGet} from '../rest.js';
import {link, may, useShared} from '../state.js';
import {Curl, Dialog, Field, Foreign, Missing, Panel, Problem, Stale, Status, Time, Title, TypeLink, Verdict, useAction} from '../ui.js';
import {JobTable} from './jobs.js';

/** Which states the job has been in, and which steps it took, as far as its record tells. */
export function path(job) {
  const states = new Set(['pending', job.status]), steps = new Set();
  if (job.started_at || job.attempts > 0) {
    states.add('running');
    steps.add('start');
  }
  if (job.status === 'pending' && job.attempts > 0) steps.add('again');
  if (job.attempts > 1) steps.add('again');
  if (job.status === 'done' || job.status === 'dead') steps.add(states.has('running') ? job.status : 'drop');
  if (job.status === 'cancelled') steps.add('cancel');
  return {states, steps};
}

function Machine({job}) {
  const {states, steps} = path(job);
  const Box = ({name, x, y}) => html`<g class=${job.status === name ? 'taken now' : states.has(name) ? 'taken' : ''}><rect x=${x} y=${y} width="112" height="36" rx="8" /><text x=${x + 56} y=${y + 23}>${name}</text></g>`;
  const Step = ({name, d, word, x, y}) => html`<path class=${steps.has(name) ? 'taken' : ''} d=${d} marker-end=${steps.has(name) ? 'url(#head-on)' : 'url(#head)'} /><text class=${steps.has(name) ? 'word taken' : 'word'} x=${x} y=${y}>${word}</text>`;
  const said = `Path: ${[...states].join(', ')}; now ${job.status}.`;
  const head = (id, css) => html`<marker id=${id} class=${css} viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0 L8 4 L0 8 Z" /></marker>`;
  const again = job.attempts > 1 ? `retried ${job.attempts - 1} ×` : 'retry';
  return html`<svg class="machine" viewBox="0 0 560 172" role="img" aria-label=${said}><defs>${head('head', '')}${head('head-on', 'on')}</defs>
    <${Step} name="drop" d="M68 103 C70 128 400 132 430 98" word="too late" x="262" y="121" /><${Step} name="cancel" d="M60 103 C60 150 200 144 428 143" word="cancel" x="262" y="157" />
    <${Step} name="start" d="M124 85 H226" word="claim" x="175" y="78" /><${Step} name="again" d="M284 67 C284 18 68 18 68 65" word=${again} x="176" y="22" />
    <${Step} name="done" d="M340 78 C390 78 380 30 428 30" word="2xx, ok" x="376" y="36" /><${Step} name="dead" d="M340 87 H428" word="give up" x="386" y="80" />
    <${Box} name="pending" x=${12} y=${67} /><${Box} name="running" x=${228} y=${67} /><${Box} name="done" x=${430} y=${12} /><${Box} name="dead" x=${430} y=${67} /><${Box} name="cancelled" x=${430} y=${124} /></svg>`;
}

/** [{n, start, end, node, error}], the oldest first; error: why it failed, undefined of one that runs or is done. */
export function attemptsOf(job) {
  const all = (job.errors || []).filter((e) => e.started_at).map((e) => ({n: e.attempt, start: e.started_at, end: e.at, node: e.node, error: e.message}));
  if (job.last_started_at) all.push({n: job.attempts, start: job.last_started_at, end: job.finished_at, node: job.node});
  return all;
}

const took = (attempt) => length(new Date(attempt.end || Date.now()) - new Date(attempt.start));
function wordsOf(attempt, job) {
  const late = attempt.start === job.started_at && job.lateness_ms !== null ? `, started ${length(job.lateness_ms)} after the deadline` : '';
  return `${attempt.error !== undefined ? `failed after ${took(attempt)}` : attempt.end ? `done in ${took(attempt)}` : `runs for ${took(attempt)}`} on ${attempt.node}${late}`;
}

function eventsOf(job, next) {
  const attempts = attemptsOf(job);
  const events = [{at: job.gmt_create, text: 'Created', order: 0}, {at: job.action_time, text: 'Deadline', order: 1, isAhead: new Date(job.action_time) > Date.now()}];
  // The numbers of attempts begin anew when a dead job is made pending again.
  attempts.forEach((each, i) => i > 0 && each.n <= attempts[i - 1].n && events.push({at: each.start, order: 1.5, isUntimed: true, text: 'Retried after it had died: its attempts are counted anew'}));
  for (const each of attempts) events.push({at: each.start, end: each.end, order: 2, css: each.error !== undefined ? 'failed' : '', text: html`<strong>Attempt ${each.n}</strong> ${wordsOf(each, job)}`, error: each.error});
  if (job.started_at && !attempts.some((each) => each.start === job.started_at)) events.push({at: job.started_at, text: `First start, ${length(job.lateness_ms)} after the deadline`, order: 2});
  for (const each of job.errors || []) if (!each.started_at) events.push({at: each.at, order: 3, css: 'failed', text: `Noted on ${each.node}`, error: each.message});
  if (job.finished_at) events.push({at: job.finished_at, text: `Ended: ${job.status}`, order: 4, css: job.status === 'dead' ? 'failed' : ''});
  else if (next && next !== job.action_time) events.push({at: next, text: job.status === 'running' ? 'Its lease ends' : 'Next attempt', order: 4, isAhead: true});
  return events.sort((a, b) => new Date(a.at) - new Date(b.at) || a.order - b.order);
}

function Timeline({job, next}) {
  const attempts = attemptsOf(job), hidden = job.attempts - attempts.length;
  return html`<ol class="timeline">${eventsOf(job, next).map((e) => html`<li class=${e.css || (e.isAhead ? 'ahead' : 'over')}>
    <div>${e.text}</div>${!e.isUntimed && html`<div class="muted"><${Time} at=${e.at} ms />${e.end ? html` to <${Time} at=${e.end} ms timeOnly=${dayOf(new Date(e.at)) === dayOf(new Date(e.end))} />` : ''} ${zoneName()}, ${away(e.at)}</div>`}${e.error && html`<pre><${Foreign} text=${e.error} lines /></pre>`}</li>`)}</ol>
    ${hidden > 0 && html`<p class="muted">${hidden === 1 ? 'One earlier attempt is' : `${number(hidden)} earlier attempts are`} no longer kept: a job keeps its last 16 failures.</p>`}`;
}

function RescheduleDialog({job, onClose, reload}) {
  const [when, setWhen] = useState('');
  const action = useAction();
  const body = {action_time: fromInput(when)};
  const run = async () => {
    if (await action.run(() => call('POST', `v1/jobs/${job.job_id}/reschedule`, body), 'It has a new deadline.')) {
      reload();
      onClose();
    }
  };
  return html`<${Dialog} title="Reschedule" onClose=${onClose}><${Field} label=${`New deadline (${zoneName()})`}><input type="datetime-local" step="1" value=${when} onInput=${(e) => setWhen(e.target.value)} /><//>
    <div class="buttons">${[['in 10 minutes', 600_000], ['in 1 hour', 3_600_000], ['in 1 day', 86_400_000]].map(([text, ms]) => html`<button class="small" onClick=${() => setWhen(toInput(new Date(Date.now() + ms).toISOString()))}>${text}</button>`)}</div>
    <${Problem} text=${action.problem} /><div class="buttons"><button class="primary" disabled=${!when || action.isBusy} onClick=${run}>Reschedule</button><button onClick=${onClose}>Not now</button></div><//>`;
}

const kVerbs = {cancel: ['Cancel', 'pending', 'It is cancelled.'], run: ['Run now', 'pending', 'It is due now.'], retry: ['Retry', 'dead', 'It is pending again.']};

function Actions({job, reload}) {
  const action = useAction();
  const [isOpen, setOpen] = useState(false);
  if (!may('produce')) return null;
  const run = (verb) => action.run(() => call('POST', `v1/jobs/${job.job_id}/${verb}`), kVerbs[verb][2]).then(reload);
  return html`<div class="buttons">${Object.entries(kVerbs).map(([verb, [text, status]]) => job.status === status &&
      html`<button class=${verb === 'cancel' ? 'danger' : ''} disabled=${action.isBusy} onClick=${() => run(verb)}>${text}</button>`)}
    ${job.status === 'pending' && html`<button onClick=${() => setOpen(true)}>Reschedule…</button>`}
    ${isOpen && html`<${RescheduleDialog} job=${job} onClose=${() => setOpen(false)} reload=${reload} />`}</div><${Problem} text=${action.problem} />`;
}

function Facts({job, why}) {
  const rows = [
    ['Business key', html`<${Foreign} text=${job.biz_id} />`], ['Type', html`<${TypeLink} name=${job.biz_type} />`],
    ['Deadline', html`<${Time} at=${job.action_time} ms /> ${zoneName()}`], ['Attempts', `${number(job.attempts)} of ${number(job.max_attempts)}`],
    ['Lateness', length(job.lateness_ms)], ['Shard', html`${job.shard}${why.database ? `, in ${why.database}` : ''}${why.node ? `, scanned by ${why.node}` : ''}`],
    ['Idempotency key', job.idempotency_key ? html`<${Foreign} text=${job.idempotency_key} />` : 'none'], ['Changed', html`<${Time} at=${job.gmt_modified} ms /> ${zoneName()}`],
  ];
  return html`<table class="keys"><caption class="visually-hidden">Facts</caption><tbody>${rows.map(([key, value]) => html`<tr><th scope="row">${key}</th><td>${value}</td></tr>`)}</tbody></table>`;
}

function Commands({job}) {
  const at = `v1/jobs/${job.job_id}`;
  return html`<div class="curls"><${Curl} label="this job" text=${curl('GET', at)} /><${Curl} label="why has it, or has it not, fired" text=${curl('GET', at + '/explain')} />
    <${Curl} label="cancel (pending)" text=${curl('POST', at + '/cancel')} /><${Curl} label="run now (pending)" text=${curl('POST', at + '/run')} />
    <${Curl} label="reschedule (pending)" text=${curl('POST', at + '/reschedule', {delay_ms: 600000})} /><${Curl} label="retry (dead)" text=${curl('POST', at + '/retry')} /></div>`;
}

function Others({job}) {
  const others = useGet('v1/jobs' + query({biz_id: job.biz_id, limit: '20'}), {every: 3});
  const rows = ((others.data && others.data.items) || []).filter((each) => each.job_id !== job.job_id);
  if (!others.data) return html`<${Missing} answer=${others} what="The list" />`;
  return rows.length ? html`<${JobTable} jobs=${rows} caption="Other jobs of this key" />` : html`<p class="muted">None.</p>`;
}

export function Job() {
  const id = useShared().query.get('id') || '';
  const answer = useGet(id ? `v1/jobs/${encodeURIComponent(id)}/explain` : '');
  const job = answer.data && answer.data.job;
  // The text that the server sent: no number goes through this browser's arithmetic.
  const attribute = useMemo(() => (answer.text ? memberText(memberText(answer.text, 'job'), 'attribute') : ''), [answer.text]);
  if (!id) return html`<${Title} text="Job"><a href=${link('jobs')}>All jobs</a><//><${Panel} title="Job"><p>Which job? <a href=${link('jobs')}>Search</a> for it by its business key.</p><//>`;
  if (!job)
    return html`<${Title} text=${`Job ${id}`}><a href=${link('jobs')}>All jobs</a><//><${Panel} title="Job">${answer.error && answer.error.status === 404 && !answer.isAbsent ?
      html`<p>There is no such job. Ended jobs are kept for some days only; a key finds the others: <a href=${link('jobs')}>search</a>.</p>` : html`<${Missing} answer=${answer} what="The job" />`}<//>`;
  const isLong = (job.errors || []).length > 2; // then the timeline fills its column
  const stored = html`<${Panel} title="Attribute" note="as it is stored">${attribute && attribute !== 'null' ? html`<pre id="attribute"><${Foreign} text=${attribute} lines /></pre>` : html`<p class="muted">None.</p>`}<//>`;
  const [first, ...rest] = sentences(inZone(answer.data.reason));
  return html`<${Title} text=${`Job ${id}`}><${Status} status=${job.status} /><span class="grow"></span><${Actions} job=${job} reload=${answer.reload} /><//>
    <${Stale} answer=${answer} />
    <${Verdict} kind=${kindOf(job)} text=${html`<${Foreign} text=${first} mono=${false} />`} more=${rest.length > 0 && html`<${Foreign} text=${rest.join(' ')} mono=${false} />`} />
    <div class="columns"><div class="column"><${Panel} title="Path"><${Machine} job=${job} /><//>
        <${Panel} title="Facts"><${Facts} job=${job} why=${answer.data} /><//>
        ${isLong && stored}</div>
      <div class="column"><${Panel} title="Timeline"><${Timeline} job=${job} next=${answer.data.next_attempt_at} /><//>${!isLong && stored}</div></div>
    <${Panel} title="Other jobs of this key"><${Others} job=${job} /><//>
    <${Panel} title="Commands"><${Commands} job=${job} /><details><summary>As JSON</summary><pre>${answer.text}</pre></details><//>`;
}

// The first sentence stands out. A dot inside a word or a number ends none.
const sentences = (text) => text.split(/(?<=\.) (?=[A-Z])/);
const kindOf = (job) => ({dead: 'bad', done: 'good'}[job.status] || (job.status === 'pending' && new Date(job.fire_at) < Date.now() - 5000 ? 'warn' : 'quiet'));

// What was given up, by type and reason, and how it is tried again.
import {html, useMemo, useState} from '../vendor/preact.js';
import {number, percent, zoneName} from '../format.js';
import {query, useGet} from '../rest.js';
import {link, may, useShared} from '../state.js';
import {BulkDialog} from '../bulk.js';
import {Foreign, JobLink, Missing, Missed, Panel, Stale, Table, Time, Title, TypeLink} from '../ui.js';

/** Rows of the report, added up over its slots. */
export function groups(items) {
  const all = new Map();
  for (const row of items) {
    const key = JSON.stringify([row.biz_type, row.reason]);
    const sum = all.get(key) || {...row, n: 0};
    sum.n += Number(row.n);
    if (row.first_at < sum.first_at) sum.first_at = row.first_at;
    if (row.last_at >= sum.last_at) Object.assign(sum, {last_at: row.last_at, sample_job_id: row.sample_job_id});
    all.set(key, sum);
  }
  return [...all.values()].sort((a, b) => b.n - a.n);
}

/** The same from a page of jobs, where there is no report. */
const fromJobs = (jobs) => jobs.map((job) => ({
  biz_type: job.biz_type, reason: job.errors?.length ? job.errors[job.errors.length - 1].message.replace(/\d+/g, 'N') : '', n: 1, first_at: job.finished_at, last_at: job.finished_at, sample_job_id: job.job_id,
}));

export function Dead() {
  const type = useShared().query.get('type') || '';
  const report = useGet('v1/reports/dead' + query({type, limit: '1000'}), {every: 3, pages: 4});
  const list = useGet(report.isAbsent ? 'v1/jobs' + query({biz_type: type, status: 'dead', limit: '1000'}) : '', {every: 3});
  const [chosen, choose] = useState(null);
  const answer = report.isAbsent ? list : report;
  const rows = useMemo(() => groups(!answer.data ? [] : report.isAbsent ? fromJobs(answer.data.items) : answer.data.items), [answer.data]);
  const total = rows.reduce((sum, row) => sum + row.n, 0);
  return html`<${Title} text="Dead letters">${type && html`<span>of <${TypeLink} name=${type} /></span><a href=${link('dead')}>all types</a>`}<//>
    <${Stale} answer=${answer} /><${Missed} data=${answer.data} />
    <${Panel} title=${answer.data ? `${number(total)}${report.isAbsent && answer.data.next_cursor ? ' newest' : ''} dead, by type and reason` : 'By type and reason'}
      note=${report.isAbsent ? '' : 'as counted when they died'} actions=${may('produce') && type && total > 0 && html`<button class="small" onClick=${() => choose({biz_type: type})}>Replay all of this type…</button>`}>
      ${!answer.data ? html`<${Missing} answer=${answer} what="The report" />` : rows.length === 0 ?
        html`<p>Nothing is dead. A job dies when its attempts are used up or its handler refuses it for good; it is kept here with its reason, and can be tried again.</p>` :
        html`<${Table} caption="Dead jobs by type and reason" rows=${rows} rowKey=${(r) => `${r.biz_type} ${r.reason}`} columns=${[
          {label: 'Type', cell: (r) => html`<${TypeLink} name=${r.biz_type} />`},
          {label: 'Reason', cell: (r) => (r.reason ? html`<${Foreign} text=${r.reason} clip />` : html`<span class="muted">none given</span>`)},
          {label: 'Jobs', isNumber: true, cell: (r) => html`<a href=${link('jobs', {biz_type: r.biz_type, status: 'dead'})}>${number(r.n)}</a>`},
          {label: 'Share', isNumber: true, cell: (r) => percent(r.n / total, 0)},
          {label: `First (${zoneName()})`, cell: (r) => html`<span class="nowrap"><${Time} at=${r.first_at} /></span>`},
          {label: `Last (${zoneName()})`, cell: (r) => html`<span class="nowrap"><${Time} at=${r.last_at} /></span>`},
          {label: 'Sample', isNumber: true, cell: (r) => (r.sample_job_id ? html`<${JobLink} id=${String(r.sample_job_id)} />` : '–')},
          ...(may('produce') ? [{label: 'Actions', cell: (r) => html`<button class="small" aria-label=${`Replay ${r.biz_type}: ${r.reason}`} onClick=${() => choose(report.isAbsent ? {biz_type: r.biz_type} : {biz_type: r.biz_type, reason: r.reason})}>Replay…</button>`}] : []),
        ]} />`}
    <//>
    ${chosen && html`<${BulkDialog} filter=${{...chosen, status: 'dead'}} actions=${['retry']} rate="50" onClose=${() => { choose(null); answer.reload(); }} />`}`;
}

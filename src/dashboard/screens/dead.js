// What is given up now, by type and reason, and how it is tried again.
import {html, useMemo, useState} from '../vendor/preact.js';
import {away, number, percent, zoneName} from '../format.js';
import {query, useGet} from '../rest.js';
import {go, link, may, useShared} from '../state.js';
import {BulkDialog} from '../bulk.js';
import {Field, Foreign, JobLink, Missing, Missed, Panel, Stale, Table, TableCsv, Time, Title, TypeLink} from '../ui.js';

const byNumber = (items) => [...items].sort((a, b) => b.n - a.n);

function columns(total, choose) {
  return [
    {label: 'Type', cell: (r) => html`<${TypeLink} name=${r.biz_type} wraps />`, csv: (r) => r.biz_type},
    {label: 'Reason', cell: (r) => (r.reason ? html`<${Foreign} text=${r.reason} />` : html`<span class="muted">none given</span>`), csv: (r) => r.reason},
    {label: 'Dead now', isNumber: true, cell: (r) => number(r.n), csv: (r) => r.n},
    {label: 'Share', isNumber: true, cell: (r) => html`${percent(r.n / total, 0)}<span class="meter" aria-hidden="true"><i style=${{width: `${(100 * r.n) / total}%`}}></i></span>`, csv: (r) => r.n / total},
    {label: `First (${zoneName()})`, cell: (r) => html`<span class="nowrap"><${Time} at=${r.first_at} /></span><span class="sub">${away(r.first_at)}</span>`, csv: (r) => r.first_at},
    {label: `Last (${zoneName()})`, cell: (r) => html`<span class="nowrap"><${Time} at=${r.last_at} /></span><span class="sub">${away(r.last_at)}</span>`, csv: (r) => r.last_at},
    {label: 'Sample', isNumber: true, cell: (r) => (r.sample_job_id ? html`<${JobLink} id=${String(r.sample_job_id)} />` : '–'), csv: (r) => r.sample_job_id},
    ...(may('produce') ? [{label: 'Action', cell: (r) => html`<button class="small" aria-label=${`Replay ${r.biz_type}: ${r.reason}`} onClick=${() => choose({biz_type: r.biz_type, reason: r.reason})}>Replay…</button>`}] : []),
  ];
}

export function Dead() {
  const type = useShared().query.get('type') || '';
  const now = useGet('v1/reports/dead_now' + query({type, limit: '1000'}), {every: 3});
  const stats = useGet('v1/stats');
  const [chosen, choose] = useState(null);
  const rows = useMemo(() => byNumber((now.data && now.data.items) || []), [now.data]);
  const grouped = rows.reduce((sum, row) => sum + Number(row.n), 0);
  const counts = ((stats.data && stats.data.items) || []).filter((row) => row.dead > 0 || row.biz_type === type);
  const total = counts.filter((row) => !type || row.biz_type === type).reduce((sum, row) => sum + row.dead, 0);
  const isPart = rows.some((row) => row.is_exact === false);
  const shown = columns(Math.max(grouped, 1), choose);
  const close = () => {
    choose(null);
    now.reload();
    stats.reload();
  };
  return html`<${Title} text="Dead letters"><span class="grow"></span><${Field} label="Type"><select value=${type} onChange=${(e) => go(link('dead', {type: e.target.value}))}><option value="">all</option>${counts.map((row) => html`<option value=${row.biz_type}>${row.biz_type} (${number(row.dead)})</option>`)}</select><//><//>
    <${Stale} answer=${now} /><${Missed} data=${now.data} />
    <${Panel} title=${stats.data ? `${number(total)} dead now${type ? ` of ${type}` : ''}` : 'Dead now'}
      note=${isPart ? `the ${number(grouped)} created last, by reason` : 'by type and reason'} actions=${html`${rows.length > 0 && html`<${TableCsv} name="Dead letters" columns=${shown} rows=${rows} />`}
        ${type && total > 0 && html`<a class="quiet-link small-text" href=${link('jobs', {biz_type: type, status: 'dead'})}>The jobs</a>`}
        ${may('produce') && type && total > 0 && html`<button class="small" onClick=${() => choose({biz_type: type})}>Replay all of this type…</button>`}`}>
      ${!now.data ? html`<${Missing} answer=${now} what="The list of reasons" tall />` : rows.length === 0 ?
        html`<p>Nothing is dead${type ? ' of this type' : ''}. A job dies when its attempts are used up or its handler refuses it for good; it is kept here with its reason, and can be tried again.</p>` :
        html`<${Table} caption="Dead jobs by type and reason" rows=${rows} rowKey=${(r) => `${r.biz_type} ${r.reason}`} columns=${shown} />`}
    <//>
    ${chosen && html`<${BulkDialog} filter=${{...chosen, status: 'dead'}} actions=${['retry']} rate="50" onClose=${close} />`}`;
}

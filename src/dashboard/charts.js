// Pictures of numbers; each has its table.
import {html, useEffect, useRef, useState} from './vendor/preact.js';
import {clock, dayOf, moment, number, zoneName} from './format.js';
import {state, useShared} from './state.js';

const kColours = ['--accent', '--ok', '--bad', '--warn'];
const kDashes = [[], [6, 4], [2, 3], [10, 3, 2, 3]];
const colour = (name) => {
  const probe = document.createElement('span');
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const value = getComputedStyle(probe).color;
  probe.remove();
  return value;
};

// The date where a day begins, else the time of day.
const dateOrTime = (at) => (clock(at) === '00:00' ? dayOf(at).slice(5) : clock(at));

function options(width, series, unit, isLog) {
  const text = colour('--muted'), grid = {stroke: colour('--line'), width: 1};
  const format = (n) => (n === null || n === undefined ? '–' : number(Math.round(n * 10) / 10) + ' ' + unit);
  return {
    width, height: 200, cursor: {drag: {x: false, y: false}},
    tzDate: (s) => (state.zone === 'utc' ? uPlot.tzDate(new Date(s * 1000), 'Etc/UTC') : new Date(s * 1000)),
    scales: {y: isLog ? {distr: 3, log: 10} : {range: (_, low, high) => [0, Math.max(high * 1.1, 1)]}},
    axes: [{stroke: text, grid, ticks: grid, values: (_, all) => all.map((s) => dateOrTime(new Date(s * 1000)))},
           {stroke: text, grid, ticks: grid, size: 64, values: (_, all) => all.map((n) => (n === null ? '' : number(n)))}],
    legend: {live: true},
    series: [{value: (_, s) => (s ? moment(new Date(s * 1000).toISOString()) : '–')},
             ...series.map(({label}, i) => ({label, stroke: colour(kColours[i]), width: 2, dash: kDashes[i], points: {show: false}, value: (_, n) => format(n)}))],
  };
}

/** Lines over time. times: seconds; series: [{label, values}] */
export function Lines({caption, times, series, unit, isLog}) {
  const shared = useShared();
  const place = useRef(null), plot = useRef(null);
  const shape = `${shared.theme} ${shared.zone} ${series.map((s) => s.label)}`;
  useEffect(() => {
    const make = () => {
      if (plot.current) plot.current.destroy();
      plot.current = new uPlot(options(place.current.clientWidth, series, unit, isLog), [times, ...series.map((s) => s.values)], place.current);
    };
    make();
    const resized = new ResizeObserver(() => plot.current && plot.current.setSize({width: place.current.clientWidth, height: 200}));
    resized.observe(place.current);
    const scheme = matchMedia('(prefers-color-scheme: dark)');
    scheme.addEventListener('change', make);
    return () => {
      resized.disconnect();
      scheme.removeEventListener('change', make);
      plot.current.destroy();
      plot.current = null;
    };
  }, [shape]);
  useEffect(() => {
    if (plot.current) plot.current.setData([times, ...series.map((s) => s.values)]);
  }, [times, series]);
  return html`<div class="chart"><div class="plot" ref=${place} role="img" aria-label=${`${caption}; the numbers are in the table below`}></div>
    <${Numbers} caption=${caption} head=${[`Time (${zoneName()})`, ...series.map((s) => `${s.label} (${unit})`)]}
      rows=${times.map((s, i) => [moment(new Date(s * 1000).toISOString()), ...series.map((each) => number(each.values[i]))])} /></div>`;
}

/** Bars over time. items: [{at, n, low, high}] */
export function Bars({caption, items, width, line}) {
  const most = Math.max(...items.map((i) => i.n), line || 0, 1);
  const name = (at) => (width === 'day' ? dayOf(at) : `${dayOf(at).slice(5)} ${clock(at)}`);
  return html`<div class="chart low"><div class="axis"><span>${number(most)} per ${width}</span></div>
    <div class="bars" role="img" aria-label=${`${caption}; the numbers are in the table below`}>${items.map((i) =>
      html`<span title=${`${name(i.at)}: ${number(i.n)}`} style=${{height: `${(100 * i.n) / most}%`}}></span>`)}</div>
    <div class="axis"><span>${items.length > 0 && name(items[0].at)}</span><span>${items.length > 0 && name(items[items.length - 1].at)}</span></div>
    <${Numbers} caption=${caption} head=${[`${width} (${zoneName()})`, 'due', 'between']}
      rows=${items.filter((i) => i.n > 0).map((i) => [name(i.at), number(i.n), i.isExact ? 'exact' : `${number(i.low)} and ${number(i.high)}`])} /></div>`;
}

function Numbers({caption, head, rows}) {
  const [isOpen, setOpen] = useState(false);
  return html`<details onToggle=${(event) => setOpen(event.target.open)}><summary>Table</summary>
    ${isOpen && html`<div class="scroll" tabindex="0" role="group" aria-label=${caption}><table><caption>${caption}</caption><thead><tr>${head.map((text, i) => html`<th scope="col" class=${i ? 'num' : ''}>${text}</th>`)}</tr></thead>
      <tbody>${rows.map((row) => html`<tr>${row.map((text, i) => html`<td class=${i ? 'num' : ''}>${text}</td>`)}</tr>`)}</tbody></table></div>`}
  </details>`;
}

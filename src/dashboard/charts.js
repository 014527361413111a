// Pictures of numbers; each has its table.
import {html, useEffect, useRef, useState} from './vendor/preact.js';
import {clock, dayOf, length, moment, number, short, weekday, zoneName} from './format.js';
import {state, useShared} from './state.js';
import {Csv} from './csv.js';

const kColours = ['--series-1', '--series-2', '--bad', '--warn'];
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
const withUnit = (n, unit) => (n === null || n === undefined ? '' : unit === 'ms' ? length(n) : `${number(Math.round(n * 10) / 10)} ${unit}`);

function options(width, series, unit, isLog, point) {
  const text = colour('--muted'), grid = {stroke: colour('--line'), width: 1}, font = `11.5px ${getComputedStyle(document.body).fontFamily}`;
  const onAxis = (n) => (n === null ? '' : unit !== 'ms' ? short(n) : n < 1000 ? `${n} ms` : `${number(n / 1000)} s`);
  const powers = (_, axis, low, high) => Array.from({length: 14}, (_each, i) => 10 ** (i - 2)).filter((n) => n >= low && n <= high);
  return {
    width, height: 180, cursor: {drag: {x: false, y: false}, points: {size: 6}}, padding: [8, 18, 0, 0],
    tzDate: (s) => (state.zone === 'utc' ? uPlot.tzDate(new Date(s * 1000), 'Etc/UTC') : new Date(s * 1000)),
    scales: {y: isLog ? {distr: 3, log: 10} : {range: (_, low, high) => [0, Math.max(high * 1.1, 1)]}},
    axes: [{stroke: text, font, size: 26, grid: {show: false}, ticks: {show: false}, values: (_, all) => all.map((s) => dateOrTime(new Date(s * 1000)))},
           {stroke: text, font, grid, ticks: {show: false}, size: 58, values: (_, all) => all.map(onAxis), ...(isLog ? {splits: powers, filter: (_, all) => all} : {})}],
    legend: {show: false}, hooks: {setCursor: [(plot) => point(plot.cursor.idx ?? -1)]},
    series: [{}, ...series.map(({label}, i) => ({label, stroke: colour(kColours[i]), width: 1.75, dash: kDashes[i], points: {show: false}}))],
  };
}

/** Lines over time. times: seconds; series: [{label, values}] */
export function Lines({caption, times, series, unit, isLog}) {
  const shared = useShared();
  const place = useRef(null), plot = useRef(null);
  const [pointed, point] = useState(-1);
  const shape = `${shared.theme} ${shared.zone} ${series.map((s) => s.label)}`;
  useEffect(() => {
    const make = () => {
      if (plot.current) plot.current.destroy();
      plot.current = new uPlot(options(place.current.clientWidth, series, unit, isLog, point), [times, ...series.map((s) => s.values)], place.current);
    };
    make();
    const resized = new ResizeObserver(() => plot.current && plot.current.setSize({width: place.current.clientWidth, height: 180}));
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
  const i = times[pointed] === undefined ? times.length - 1 : pointed, at = new Date(times[i] * 1000);
  const readout = `${weekday(at)} ${dayOf(at).slice(5)} ${clock(at)}: ${series.map((s) => `${s.label} ${withUnit(s.values[i], unit) || '–'}`).join(', ')}`;
  return html`<div class="chart"><p class="readout muted">${readout}</p><div class="plot" ref=${place} role="img" aria-label=${`${caption}; the numbers are in the table below`}></div>
    <div class="legend">${series.map(({label}, n) => html`<span><i class=${`line l${n + 1}`}></i>${label}</span>`)}</div>
    <${Numbers} caption=${caption} head=${[`Time (${zoneName()})`, ...series.map((s) => `${s.label} (${unit})`)]}
      rows=${() => times.map((s, i) => [moment(new Date(s * 1000).toISOString()), ...series.map((each) => number(each.values[i]))])} /></div>`;
}

const kAxisMarks = 5;

// A round number at or above n.
function roundUp(n) {
  const size = 10 ** Math.floor(Math.log10(Math.max(n, 1)));
  return [1, 2, 3, 4, 5, 6, 8, 10].map((step) => step * size).find((step) => step >= n) || n;
}

/**
 * Stacked bars over time. items: [{at, n, low, high, isExact, parts: [n by name]}]; names: of the parts, the largest
 * first; limit: {n, text}, drawn as a line where it is near.
 */
export function Bars({caption, items, names, width, limit}) {
  const [shown, show] = useState(-1);
  const busiest = Math.max(...items.map((i) => i.n), 1);
  const isNear = limit && limit.n > 0 && limit.n <= 3 * busiest;
  const most = roundUp(Math.max(busiest, isNear ? limit.n : 0));
  const name = (at) => (width === 'day' ? `${weekday(at)} ${dayOf(at).slice(5)}` : `${weekday(at)} ${dayOf(at).slice(5)} ${clock(at)}`);
  const amount = (i) => (i.isExact ? number(i.n) : `about ${number(i.n)}, between ${number(i.low)} and ${number(i.high)},`);
  const item = items[shown];
  const readout = item ? `${name(item.at)}: ${amount(item)} due${item.n > 0 ? ': ' + names.map((each, i) => [each, item.parts[i]]).filter(([, n]) => n > 0).map(([each, n]) => `${each} ${number(n)}`).join(', ') : ''}` :
    `${number(items.reduce((sum, i) => sum + i.n, 0))} due; most in one ${width}: ${number(busiest)}, at ${name(items.find((i) => i.n === busiest)?.at || items[0].at)}`;
  const every = Math.max(1, Math.ceil(items.length / kAxisMarks));
  const gap = items.length > 100 ? 0.15 : 0.25;
  return html`<div class="chart"><p class="readout muted">${readout}</p>
    <div class="bars"><div class="y" aria-hidden="true"><span>${short(most)}</span><span>${short(most / 2)}</span><span>0</span></div>
      <svg viewBox=${`0 0 ${items.length} 100`} preserveAspectRatio="none" role="img" aria-label=${`${caption}; the numbers are in the table below`} onMouseLeave=${() => show(-1)}>
        ${[0, 50, 100].map((y) => html`<line class="grid" x1="0" x2=${items.length} y1=${y} y2=${y} />`)}
        ${items.map((each, x) => {
          let top = 100;
          return each.parts.map((n, i) => {
            const height = (100 * n) / most;
            top -= height;
            return n > 0 && html`<rect class=${`s${Math.min(i + 1, 6)}`} x=${x + gap / 2} width=${1 - gap} y=${top} height=${height} />`;
          });
        })}
        ${isNear && html`<line class="limit" x1="0" x2=${items.length} y1=${100 - (100 * limit.n) / most} y2=${100 - (100 * limit.n) / most} />`}
        ${items.map((_, x) => html`<rect class="hit" x=${x} width="1" y="0" height="100" onMouseEnter=${() => show(x)} />`)}</svg>
      <div class="x" aria-hidden="true">${items.filter((_, i) => i % every === 0).map((each, i) => html`<span style=${{left: `${(100 * i * every) / items.length}%`}}>${width === 'day' ? dayOf(each.at).slice(5) : width === 'hour' ? `${weekday(each.at)} ${clock(each.at)}` : clock(each.at)}</span>`)}</div></div>
    <div class="legend">${names.map((each, i) => html`<span><i class=${`s${Math.min(i + 1, 6)}`}></i>${each}</span>`)}</div>
    ${limit && html`<p class="muted small-text">${limit.text}</p>`}
    <${Numbers} caption=${caption} head=${[`${width} (${zoneName()})`, 'due', 'between', ...names]}
      rows=${() => items.filter((i) => i.n > 0).map((i) => [width === 'day' ? dayOf(i.at) : moment(i.at.toISOString()).slice(0, 16), number(i.n), i.isExact ? 'exact' : `${number(i.low)} and ${number(i.high)}`, ...i.parts.map(number)])} /></div>`;
}

/** The course of one number, without axes; `text` says what it is. */
export function Spark({values, text}) {
  if (!values || values.length < 2) return html`<span class="zero">–</span>`;
  const most = Math.max(...values, 1), at = (n, i) => `${i} ${(20 - (19 * n) / most).toFixed(2)}`;
  const line = values.map(at).join(' L');
  return html`<svg class="spark" viewBox=${`0 0 ${values.length - 1} 20`} preserveAspectRatio="none" role="img" aria-label=${text}><title>${text}</title>
    <path class="area" d=${`M0 20 L${line} L${values.length - 1} 20 Z`} /><path d=${`M${line}`} /></svg>`;
}

function Numbers({caption, head, rows}) {
  const [isOpen, setOpen] = useState(false);
  return html`<div class="foot"><details onToggle=${(event) => setOpen(event.target.open)}><summary>Table</summary>
    ${isOpen && html`<div class="scroll" tabindex="0" role="group" aria-label=${caption}><table><caption>${caption}</caption><thead><tr>${head.map((text, i) => html`<th scope="col" class=${i ? 'num' : ''}>${text}</th>`)}</tr></thead>
      <tbody>${rows().map((row) => html`<tr>${row.map((text, i) => html`<td class=${i ? 'num' : ''}>${text}</td>`)}</tr>`)}</tbody></table></div>`}
  </details><${Csv} name=${caption} rows=${() => [head, ...rows().map((row) => row.map((text, i) => (i && /^[\d,]+$/.test(text) ? text.replaceAll(',', '') : text)))]} /></div>`;
}

// The parts that screens are made of.
import {html, useEffect, useRef, useState} from './vendor/preact.js';
import {Csv} from './csv.js';
import {away, moment, number, zoneName} from './format.js';
import {curl} from './rest.js';
import {link, say, state} from './state.js';

const kStatus = {
  pending: ['◷', 'quiet'], running: ['▶', 'warn'], done: ['✓', 'good'], cancelled: ['⊘', 'quiet'], dead: ['✕', 'bad'],
};

/** A state is an icon and a word, never a colour alone. */
export const Badge = ({icon, kind = 'quiet', children}) =>
  html`<span class=${'badge ' + kind}><span aria-hidden="true">${icon}</span>${children}</span>`;
export const Status = ({status}) => {
  const [icon, kind] = kStatus[status] || ['?', 'quiet'];
  return html`<${Badge} icon=${icon} kind=${kind}>${status}<//>`;
};
export const Good = ({is, yes, no, kind = 'bad'}) =>
  html`<${Badge} icon=${is ? '✓' : '✕'} kind=${is ? 'good' : kind}>${is ? yes : no}<//>`;

// Control characters but for tabs and ends of lines, what is not seen, and what turns the direction of writing; in a key
// tabs and ends of lines, too; of a text of nothing else, blanks.
const kHidden = /([\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb])/;
const kHiddenInKey = new RegExp(`([\\t\\n])|${kHidden.source}`);

/** Text that a caller has sent: as it is, for itself, and with what is hidden in it made visible. lines: it may have several. */
export function Foreign({text, clip, mono = true, lines = false}) {
  const hidden = /\S/.test(text ?? '') ? (mono && !lines ? kHiddenInKey : kHidden) : /(\s)/;
  const shown = String(text ?? '').split(hidden).filter((piece) => piece !== undefined).map((piece) => (piece.length !== 1 || !hidden.test(piece) ? piece :
    html`<span class="esc" data-code=${'U+' + piece.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}><span class="raw">${piece}</span></span>`));
  return html`<bdi class=${(mono ? 'mono' : '') + (clip ? ' clip' : '')} title=${clip ? text : undefined}>${shown}</bdi>`;
}

export const Time = ({at, ms, relative, timeOnly}) => (!at ? '–' :
  html`<time datetime=${at} title=${`${moment(at, {ms: true})} ${zoneName()}, ${away(at)}`}>${relative ? away(at) : timeOnly ? moment(at, {ms}).slice(11) : moment(at, {ms})}</time>`);

export const Title = ({children, text}) => {
  useEffect(() => {
    document.title = `${text} · Tocsin`;
  }, [text]);
  return html`<div class="title"><h1 tabindex="-1">${text}</h1>${children}</div>`;
};

export const Panel = ({title, note, actions, label, children}) => html`
  <section class="panel" aria-label=${title || label}>
    ${(title || actions) && html`<header><h2>${title}</h2>${note && html`<p class="muted">${note}</p>`}<span class="grow"></span>${actions}</header>`}
    ${children}
  </section>`;

// Without what the database's driver adds; the whole text is in the title. A read that ran into its time limit is said
// in the words of a page.
const inShort = (message) => (/^This took too long/.test(message) ? 'There is more than could be read within the time limit. Choose a type, a state or a shorter range.' :
  message.replace(/(is not available): .*$/s, '$1.'));

/** What stands in place of data: nothing yet, an error, or a call that this node does not know. `tall`: as high as a chart, or as what it names: 'hours', 'days'. */
export function Missing({answer, what, tall}) {
  const css = ['reading', tall && 'tall', typeof tall === 'string' && tall].filter(Boolean).join(' ');
  if (answer.isAbsent) return html`<p class="muted">${what} is not available on this node.</p>`;
  if (answer.error)
    return html`<div class=${css} role="status" title=${answer.error.message}><span><strong class="is-warn">! ${what} could not be read.</strong><br />${inShort(answer.error.message)}${/is not available/.test(answer.error.message) && state.query.has('screen') && html` <a href="?">What helps</a>`}</span></div>`;
  return html`<p class=${css}>Reading…</p>`;
}

/** A note above data that could not be refreshed. */
// Its place is always there: Preact puts what stands beside a component without elements into the wrong order when it
// gets some.
export const Stale = ({answer}) => html`<div class="place">${answer.data && answer.error && !answer.isAbsent &&
  html`<div class="note warn" role="status"><span class="body">Not up to date: ${inShort(answer.error.message)}</span></div>`}</div>`;

export function Missed({data}) {
  const names = data && data.missing;
  return html`<div class="place">${names && names.length > 0 &&
    html`<div class="note warn" role="status"><span class="body">Incomplete, without ${names.join(', ')}: ${names.length > 1 ? 'these databases do' : 'this database does'} not answer.</span></div>`}</div>`;
}

/** columns: {label, cell(row), isNumber, unit, csv(row): as a plain value} */
// `holds` ('length', 'age') is for a column whose texts change by themselves: it keeps room for the longest.
const headClass = (c) => [c.isNumber && 'num', c.holds].filter(Boolean).join(' ');
export const Table = ({caption, columns, rows, rowKey, children}) => html`
  <div class="scroll" tabindex="0" role="group" aria-label=${caption}>
    <table><caption class="visually-hidden">${caption}</caption>
      <thead><tr>${columns.map((c) => html`<th scope="col" class=${headClass(c)}>${c.label}${c.unit ? html` <small>(${c.unit})</small>` : ''}</th>`)}</tr></thead>
      <tbody>${rows.map((row, i) => html`<tr key=${rowKey ? rowKey(row, i) : i}>${columns.map((c) => html`<td class=${c.isNumber ? 'num' : ''}>${c.cell(row)}</td>`)}</tr>`)}${children}</tbody>
    </table>
  </div>`;
/** A button that gives such a table as a file. */
export const TableCsv = ({name, columns, rows}) => {
  const plain = columns.filter((c) => c.csv);
  return html`<${Csv} name=${name} rows=${() => [plain.map((c) => c.name || c.label), ...rows.map((row) => plain.map((c) => c.csv(row)))]} />`;
};

/** items: [label, value, note] */
export const Tiles = ({items}) => html`<dl class="tiles">${items.map(([label, value, note]) => html`<div class="tile"><dt>${label}</dt><dd>${value}</dd><dd>${note || ' '}</dd></div>`)}</dl>`;

const kIcons = {good: '✓', warn: '!', bad: '✕', quiet: '…'};
/** One sentence, and below it what belongs to it: [[text, what helps]]. */
export const Verdict = ({kind, text, more, points = []}) => html`<div class=${'verdict ' + kind} role="status"><span class="icon" aria-hidden="true"><span>${kIcons[kind]}</span></span><div><strong class="say">${text}</strong>
  ${more && html`<p>${more}</p>`}${points.length > 0 && html`<ul>${points.map(([what, help]) => html`<li><span><strong>${what}</strong> ${help}</span></li>`)}</ul>`}</div></div>`;

export const Count = ({n}) => (n === undefined || n === null ? html`<span class="zero">–</span>` : Number(n) === 0 ? html`<span class="zero">0</span>` : number(n));

/** What there is to see once there is something, and the command that makes it so. */
export const Empty = ({children, method, path, body}) => html`
  <div class="empty"><p>${children}</p>${path && html`<${Curl} text=${curl(method, path, body)} />`}</div>`;

export function Curl({text, label}) {
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      say('Copied.');
    } catch {
      say('The browser does not allow copying; select the text instead.', 'warn');
    }
  };
  return html`<div class="curl"><pre>${label ? html`<span class="muted"># ${label}${'\n'}</span>` : ''}${text}</pre>
    <button class="small" onClick=${copy} aria-label=${'Copy the command' + (label ? ': ' + label : '')}>Copy</button></div>`;
}

/** The browser's own dialog: it holds the focus, and gives it back. `isKept`: Esc does not close it, for it holds edits. */
export function Dialog({title, onClose, isKept = false, children}) {
  const element = useRef(null);
  useEffect(() => {
    const before = document.activeElement, dialog = element.current;
    dialog.showModal();
    return () => {
      dialog.close(); // what is behind an open one takes no focus
      if (before && before.isConnected) before.focus();
    };
  }, []);
  return html`<dialog ref=${element} aria-labelledby="dialog-title" onCancel=${(event) => { event.preventDefault(); if (!isKept) onClose(); }}
    onKeyDown=${(event) => { if (isKept && event.key === 'Escape') event.preventDefault(); /* Chromium ignores the second onCancel */ }}>
    <h2 id="dialog-title">${title}</h2><div class="stack">${children}</div></dialog>`;
}

export const Field = ({label, children, wide}) => html`<label class=${'field' + (wide ? ' wide' : '')}>${label}${children}</label>`;

export const Segments = ({label, options, value, onChange}) => html`
  <div class="segments" role="group" aria-label=${label}>${options.map(([name, text]) => html`
    <button class="small" aria-pressed=${String(name === value)} onClick=${() => onChange(name)}>${text}</button>`)}</div>`;

/** Runs `work`, then shows the text that it returns, or else `done`. The button that started it is disabled meanwhile. */
export function useAction() {
  const [isBusy, setBusy] = useState(false);
  const [problem, setProblem] = useState('');
  const run = async (work, done) => {
    setBusy(true);
    setProblem('');
    try {
      const answer = await work();
      const text = typeof answer === 'string' ? answer : done;
      if (text) say(text);
      return true;
    } catch (error) {
      const why = error.status === 403 ? `You may not do this: ${error.message}` : error.message || String(error);
      setProblem(why);
      say(why, 'bad');
      return false;
    } finally {
      setBusy(false);
    }
  };
  return {isBusy, problem, run};
}

export const Problem = ({text}) => text && html`<div class="note bad" role="alert"><span class="body">${text}</span></div>`;

export const JobLink = ({id, children}) => html`<a class="mono nowrap" href=${link('job', {id})}>${children || id}</a>`;
/** wraps: the whole name, on several lines if need be. */
export const TypeLink = ({name, wraps}) => (name ? html`<a class=${wraps ? 'wraps' : undefined} href=${link('types', {type: name})}><${Foreign} text=${name} mono=${false} clip=${!wraps} /></a>` : html`<span class="muted">unknown</span>`);

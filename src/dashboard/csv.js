// Tables as files.
import {html} from './vendor/preact.js';

// A cell that a spreadsheet would take for a formula is text.
const guarded = (text) => (/^[=+\-@\t\r]/.test(text) && Number.isNaN(Number(text)) ? `'${text}` : text);
const cell = (value) => {
  const text = guarded(value === null || value === undefined || value === '–' ? '' : typeof value === 'object' ? JSON.stringify(value) : String(value));
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
};

/** RFC 4180. rows: the first is the head. */
export const csvText = (rows) => rows.map((row) => row.map(cell).join(',')).join('\r\n') + '\r\n';

export function download(name, rows) {
  const anchor = document.createElement('a');
  anchor.href = URL.createObjectURL(new Blob(['\ufeff', csvText(rows)], {type: 'text/csv;charset=utf-8'}));
  anchor.download = name.toLowerCase().replace(/[^a-z0-9.]+/g, '-').replace(/^-|-$/g, '') + '.csv';
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(anchor.href), 10_000);
}

/** rows: called when the file is wanted. */
export const Csv = ({name, rows}) => html`<button class="small" aria-label=${`CSV: ${name}`} onClick=${() => download(`tocsin ${name}`, rows())}>CSV</button>`;

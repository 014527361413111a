// The frame: navigation, settings, the token, and the screen that the URL names.
import {html, render, useEffect, useErrorBoundary, useState} from './vendor/preact.js';
import {short, zoneName} from './format.js';
import {BulkWatch} from './bulk.js';
import {findMe, forget, useGet} from './rest.js';
import {change, go, link, setToken, setting, state, token, useShared} from './state.js';
import {Dialog, Field, Problem} from './ui.js';
import {Overview} from './screens/overview.js';
import {Types} from './screens/types.js';
import {Jobs} from './screens/jobs.js';
import {Job} from './screens/job.js';
import {Dead} from './screens/dead.js';
import {Calendar} from './screens/calendar.js';
import {Cluster} from './screens/cluster.js';
import {Reports} from './screens/reports.js';

// Name, component, key behind g, and the paths of an icon of 16 by 16.
const kScreens = {
  overview: ['Overview', Overview, 'o', 'M2 13V8M6 13V3M10 13V6M14 13V9'],
  types: ['Types', Types, 't', 'M2.5 4h11M2.5 8h11M2.5 12h7'],
  jobs: ['Jobs', Jobs, 'j', 'M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12zM8 5v3l2 1.5'],
  dead: ['Dead letters', Dead, 'd', 'M2 4h12v8H2zM2 4l6 5 6-5'],
  calendar: ['Calendar', Calendar, 'c', 'M2.5 3.5h11v10h-11zM2.5 6.5h11M5 2v3M11 2v3'],
  cluster: ['Cluster', Cluster, 'n', 'M3 2.5h10v4H3zM3 9.5h10v4H3zM5.5 4.5h.1M5.5 11.5h.1'],
  reports: ['Reports', Reports, 'r', 'M3.5 2h6l3 3v9h-9zM6 8h4M6 11h4'],
};
const kShortcuts = [['/', 'search for a business key'], ...Object.entries(kScreens).map(([, [name, , key]]) => [`g ${key}`, name]), ['?', 'this list']];

// The search field, wherever the reader is.
function find() {
  if (!document.getElementById('search')) go(link('jobs'));
  setTimeout(() => document.getElementById('search')?.focus(), 50);
}

function useKeys(showHelp) {
  useEffect(() => {
    let lastKey = '', lastAt = 0;
    const press = (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)) return;
      if (document.querySelector('dialog[open]')) return;
      const wasG = lastKey === 'g' && Date.now() - lastAt < 1500;
      lastKey = event.key;
      lastAt = Date.now();
      const screen = wasG && Object.keys(kScreens).find((name) => kScreens[name][2] === event.key);
      if (screen) {
        go(link(screen));
      } else if (event.key === '/') {
        event.preventDefault();
        find();
      } else if (event.key === '?') {
        showHelp();
      }
    };
    document.addEventListener('keydown', press);
    return () => document.removeEventListener('keydown', press);
  }, []);
}

const Brand = () => html`<a class="brand" href="?" aria-label="Tocsin, overview">
  <svg viewBox="0 0 32 32" aria-hidden="true"><rect width="32" height="32" rx="7" fill="#0b5cad" /><path d="M16 6a7 7 0 0 0-7 7v6l-2 3v1h18v-1l-2-3v-6a7 7 0 0 0-7-7zm-3 18a3 3 0 0 0 6 0z" fill="#fff" /></svg>Tocsin</a>`;

function Controls({showHelp}) {
  const next = {auto: 'light', light: 'dark', dark: 'auto'};
  const zone = zoneName();
  const signOut = () => {
    setToken('');
    forget();
    change({needsToken: true, tokenProblem: '', me: {name: '', role: '', isKnown: false}});
  };
  return html`<div class="controls">
    <button onClick=${() => setting('zone', state.zone === 'utc' ? 'local' : 'utc')} aria-label=${`Times are in ${zone}; switch to ${state.zone === 'utc' ? 'local time' : 'UTC'}`}>Times: ${zone}</button>
    <label><span class="visually-hidden">Refresh</span><select value=${String(state.refresh)} onChange=${(e) => setting('refresh', Number(e.target.value))}>
      ${[[2, 'every 2 s'], [5, 'every 5 s'], [15, 'every 15 s'], [60, 'every minute'], [0, 'never']].map(([n, text]) => html`<option value=${String(n)}>Refresh ${text}</option>`)}</select></label>
    <button onClick=${() => setting('theme', next[state.theme])}>Colours: ${state.theme}</button>
    <button onClick=${showHelp} aria-label="Keyboard shortcuts">Keys <kbd>?</kbd></button>
    ${token() && html`<button onClick=${signOut}>Sign out${state.me.isKnown ? ` ${state.me.name} (${state.me.role})` : ''}</button>`}
  </div>`;
}

function Nav({current}) {
  const shared = useShared();
  const overview = useGet(shared.needsToken ? '' : 'v1/overview');
  const dead = overview.data && overview.data.totals.dead;
  useEffect(() => { // on a phone the row is longer than the window
    const list = document.querySelector('.nav'), link_ = list.querySelector('[aria-current]');
    if (link_) list.scrollLeft = link_.offsetLeft - list.clientWidth / 2 + link_.clientWidth / 2;
  }, [current, dead > 0]); // the count makes it longer
  return html`<nav class="nav" aria-label="Screens">${Object.entries(kScreens).map(([key, [text, , , icon]]) =>
    html`<a href=${link(key)} aria-current=${key === current ? 'page' : undefined}><svg viewBox="0 0 16 16" aria-hidden="true"><path d=${icon} /></svg>${text}${key === 'dead' && dead > 0 && html`<span class="count">${short(dead)}</span>`}</a>`)}</nav>`;
}

function TokenForm() {
  const [text, setText] = useState('');
  const submit = (event) => {
    event.preventDefault();
    setToken(text.trim());
    change({needsToken: false});
    findMe();
  };
  return html`<main id="main"><div class="title"><h1 tabindex="-1">Token</h1></div><section class="panel stack" aria-label="Token">
    <p>This node asks for a token. It stays in this tab until you close it, and is sent to this node alone.</p>
    <${Problem} text=${state.tokenProblem} />
    <form class="form" onSubmit=${submit}>
      <${Field} label="Token" wide><input type="password" autocomplete="off" spellcheck="false" required autofocus value=${text} onInput=${(e) => setText(e.target.value)} /><//>
      <button class="primary" type="submit">Use it</button>
    </form></section></main>`;
}

function Screen({name}) {
  const [error, reset] = useErrorBoundary();
  useEffect(() => reset(), [name]);
  if (error) return html`<div class="title"><h1 tabindex="-1">Error</h1></div><${Problem} text=${`This screen could not be drawn: ${error.message}`} />`;
  const [, View] = name === 'job' ? ['', Job] : kScreens[name] || kScreens.overview;
  return html`<${View} />`;
}

// Beside wide windows the settings stand in the column, else below the content.
function useWide() {
  const [wide] = useState(() => matchMedia('(min-width: 1100px)'));
  const [is, set] = useState(wide.matches);
  useEffect(() => {
    const changed = () => set(wide.matches);
    wide.addEventListener('change', changed);
    return () => wide.removeEventListener('change', changed);
  }, []);
  return is;
}

function App() {
  const shared = useShared();
  const isWide = useWide();
  const [isHelp, setHelp] = useState(false);
  useKeys(() => setHelp(true));
  useEffect(() => { findMe(); }, []);
  useEffect(() => {
    if (shared.theme === 'auto') delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = shared.theme;
  }, [shared.theme]);
  const name = shared.query.get('screen') || 'overview';
  const controls = html`<${Controls} showHelp=${() => setHelp(true)} />`;
  const current = name === 'job' ? 'jobs' : name;
  return html`<a class="skip" href="#main">Skip to the content</a><div class="frame">
    <header class="bar"><${Brand} />
      <button class="small find" onClick=${find} aria-label="Find a job by its business key">Find a job <kbd>/</kbd></button>
      <${Nav} current=${current} />
      ${isWide && controls}</header>
    ${shared.needsToken ? html`<${TokenForm} />` : html`<main id="main">
      ${shared.lost && html`<div class="lost warn" role="status"><strong>⚠ Connection lost.</strong> ${shared.lost}</div>`}
      <${BulkWatch} /><${Screen} name=${name} /></main>`}
    ${!isWide && html`<footer class="controls">${controls}</footer>`}
    ${shared.toast && html`<div class=${'toast ' + shared.toast.kind} aria-hidden="true">${shared.toast.text}</div>`}
    ${isHelp && html`<${Dialog} title="Keyboard" onClose=${() => setHelp(false)}>
      <table class="keys"><caption class="visually-hidden">Keyboard shortcuts</caption><tbody>${kShortcuts.map(([keys, text]) => html`<tr><th scope="row">${keys.split(' ').map((key) => html`<kbd>${key}</kbd> `)}</th><td>${text}</td></tr>`)}</tbody></table>
      <div class="buttons"><button onClick=${() => setHelp(false)}>Close</button></div><//>`}
  </div>`;
}

const place = document.getElementById('app');
place.textContent = '';
render(html`<${App} />`, place);

// The frame: navigation, settings, the token, and the screen that the URL names.
import {html, render, useEffect, useErrorBoundary, useState} from './vendor/preact.js';
import {zoneName} from './format.js';
import {findMe} from './rest.js';
import {go, link, setToken, setting, state, token, change, useShared} from './state.js';
import {Dialog, Field, Problem} from './ui.js';
import {Overview} from './screens/overview.js';
import {Types} from './screens/types.js';
import {Jobs} from './screens/jobs.js';
import {Job} from './screens/job.js';
import {Dead} from './screens/dead.js';
import {Calendar} from './screens/calendar.js';
import {Cluster} from './screens/cluster.js';

const kScreens = {
  overview: ['Overview', Overview, 'o'], types: ['Types', Types, 't'], jobs: ['Jobs', Jobs, 'j'],
  dead: ['Dead letters', Dead, 'd'], calendar: ['Calendar', Calendar, 'c'], cluster: ['Cluster', Cluster, 'n'],
};
const kShortcuts = [['/', 'search for a business key'], ...Object.entries(kScreens).map(([, [name, , key]]) => [`g ${key}`, name]), ['?', 'this list']];

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
        if (!document.getElementById('search')) go(link('jobs'));
        setTimeout(() => document.getElementById('search')?.focus(), 50);
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
  return html`<div class="controls">
    <button onClick=${() => setting('zone', state.zone === 'utc' ? 'local' : 'utc')} aria-label=${`Times are in ${zone}; switch to ${state.zone === 'utc' ? 'local time' : 'UTC'}`}>Times: ${zone}</button>
    <label><span class="visually-hidden">Refresh</span><select value=${String(state.refresh)} onChange=${(e) => setting('refresh', Number(e.target.value))}>
      ${[[2, 'every 2 s'], [5, 'every 5 s'], [15, 'every 15 s'], [60, 'every minute'], [0, 'never']].map(([n, text]) => html`<option value=${String(n)}>Refresh ${text}</option>`)}</select></label>
    <button onClick=${() => setting('theme', next[state.theme])}>Colours: ${state.theme}</button>
    <button onClick=${showHelp} aria-label="Keyboard shortcuts">Keys <kbd>?</kbd></button>
    ${token() && html`<button onClick=${() => { setToken(''); change({needsToken: true, tokenProblem: '', me: {name: '', role: '', isKnown: false}}); }}>Sign out${state.me.isKnown ? ` ${state.me.name} (${state.me.role})` : ''}</button>`}
  </div>`;
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
  if (error) return html`<div class="title"><h1 tabindex="-1">Something unexpected</h1></div><${Problem} text=${`This screen could not be drawn: ${error.message}`} />`;
  const [, View] = name === 'job' ? ['', Job] : kScreens[name] || kScreens.overview;
  return html`<${View} />`;
}

function App() {
  const shared = useShared();
  const [isHelp, setHelp] = useState(false);
  useKeys(() => setHelp(true));
  useEffect(() => { findMe(); }, []);
  useEffect(() => {
    if (shared.theme === 'auto') delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = shared.theme;
  }, [shared.theme]);
  const name = shared.query.get('screen') || 'overview';
  const current = name === 'job' ? 'jobs' : name;
  return html`<a class="skip" href="#main">Skip to the content</a><div class="frame">
    <header class="bar"><${Brand} />
      <nav class="nav" aria-label="Screens">${Object.entries(kScreens).map(([key, [text]]) =>
        html`<a href=${link(key)} aria-current=${key === current ? 'page' : undefined}>${text}</a>`)}</nav>
      <span class="grow"></span>
      <${Controls} showHelp=${() => setHelp(true)} /></header>
    ${shared.needsToken ? html`<${TokenForm} />` : html`<main id="main">
      ${shared.lost && html`<div class="lost warn" role="status"><strong>⚠ Connection lost.</strong> ${shared.lost}</div>`}
      <${Screen} name=${name} /></main>`}
    ${shared.toast && html`<div class=${'toast ' + shared.toast.kind} aria-hidden="true">${shared.toast.text}</div>`}
    ${isHelp && html`<${Dialog} title="Keyboard" onClose=${() => setHelp(false)}>
      <table class="keys"><caption class="visually-hidden">Keyboard shortcuts</caption><tbody>${kShortcuts.map(([keys, text]) => html`<tr><th scope="row">${keys.split(' ').map((key) => html`<kbd>${key}</kbd> `)}</th><td>${text}</td></tr>`)}</tbody></table>
      <div class="buttons"><button onClick=${() => setHelp(false)}>Close</button></div><//>`}
  </div>`;
}

const place = document.getElementById('app');
place.textContent = '';
render(html`<${App} />`, place);

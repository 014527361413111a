// What all screens share: the place in the URL, the reader's settings, who the reader is, and whether the node answers.
import {useEffect, useState} from './vendor/preact.js';

const listeners = new Set();

// The filters of an address. One who writes an address may not know that the screen of jobs calls the type biz_type, as
// REST does, and the others type; a filter that is not understood would show everything.
function placeOf(search) {
  const query = new URLSearchParams(search);
  const [name, other] = query.get('screen') === 'jobs' ? ['biz_type', 'type'] : ['type', 'biz_type'];
  if (!query.has(name) && query.has(other)) query.set(name, query.get(other));
  return query;
}

const stored = (name, fallback) => {
  try {
    return localStorage.getItem('tocsin.' + name) || fallback;
  } catch {
    return fallback;
  }
};

/** Settings stay in the browser; the token only in the tab. */
export const state = {
  theme: stored('theme', 'auto'), // auto, light, dark
  zone: stored('zone', 'utc'), // utc, local
  refresh: Number(stored('refresh', '5')), // seconds; 0: never
  me: {name: '', role: '', isKnown: false},
  needsToken: false,
  tokenProblem: '',
  lost: '', // why the node gives no answer
  toast: null,
  bulk: '', // the bulk change that the frame watches
  query: placeOf(location.search),
};

export function change(changes) {
  Object.assign(state, changes);
  for (const listener of [...listeners]) listener();
}

export function setting(name, value) {
  try {
    localStorage.setItem('tocsin.' + name, String(value));
  } catch { /* private mode: it holds for this page */ }
  change({[name]: value});
}

/** Draws the calling component again whenever something changes. */
export function useShared() {
  const [, redraw] = useState(0);
  useEffect(() => {
    const listener = () => redraw((n) => n + 1);
    listeners.add(listener);
    return () => listeners.delete(listener);
  }, []);
  return state;
}

// ---- the token

export const token = () => sessionStorage.getItem('tocsin.token') || '';
export function setToken(text) {
  if (text) sessionStorage.setItem('tocsin.token', text);
  else sessionStorage.removeItem('tocsin.token');
}

const kRights = {admin: ['read', 'produce', 'manage'], producer: ['read', 'produce'], consumer: ['read'], viewer: ['read']};
/** Whether this reader may do this: 'produce' or 'manage'. The server decides again. */
export const may = (right) => (kRights[state.me.role] || []).includes(right);

// ---- the place

/** The address of a screen with its filters; empty ones are left out. */
export function link(screen, filters = {}) {
  const query = new URLSearchParams();
  if (screen !== 'overview') query.set('screen', screen);
  for (const [name, value] of Object.entries(filters)) if (value) query.set(name, value);
  return '?' + query;
}

export function go(address, {replace = false} = {}) {
  history[replace ? 'replaceState' : 'pushState'](null, '', address === '?' ? location.pathname : address);
  change({query: placeOf(location.search)});
  if (!replace) window.scrollTo(0, 0);
}
window.addEventListener('popstate', () => change({query: placeOf(location.search)}));

/** Links inside the page do not load it again. */
document.addEventListener('click', (event) => {
  const anchor = event.target.closest && event.target.closest('a[href^="?"]');
  if (!anchor || event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey) return;
  event.preventDefault();
  go(anchor.getAttribute('href'));
  const heading = document.querySelector('main h1');
  if (heading) heading.focus();
});

/** Shows a message for a while, and announces it to screen readers. */
let toastTimer;
export function say(text, kind = 'good') {
  document.getElementById('announcer').textContent = text;
  change({toast: {text, kind}});
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => change({toast: null}), 8000);
}

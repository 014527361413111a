// Calls of the REST interface, and data that refreshes itself.
import {useEffect, useRef, useState} from './vendor/preact.js';
import {change, setToken, state, token} from './state.js';

/** The folder of the page, whatever prefix a proxy has put before it. */
export const base = new URL('.', location.href).href;

const kNothing = 'There is nothing at this path.';

/** An answer that is not a success. `isAbsent`: this node does not know the path. */
export class Refused extends Error {
  constructor(status, problem) {
    super((problem.field ? `${problem.field}: ` : '') + (problem.detail || problem.title || `The node answered ${status}.`));
    this.status = status;
    this.problem = problem;
    this.isAbsent = status === 404 && problem.detail === kNothing;
  }
}

// `used`: the token that the refused request had. A late answer says nothing about a token that was typed since.
function tokenIsMissing(problem, used) {
  if (token() !== used || (!used && state.needsToken)) return;
  setToken('');
  forget();
  change({needsToken: true, tokenProblem: used ? `The token was refused: ${problem.detail || 'not known'}` : ''});
}

async function fetched(method, path, body, {maxAge = 0, ifMatch = ''}) {
  const headers = {};
  if (ifMatch) headers['If-Match'] = ifMatch;
  if (maxAge) headers['Cache-Control'] = `max-age=${maxAge}`;
  if (token()) headers.Authorization = 'Bearer ' + token();
  if (body !== undefined) headers['Content-Type'] = 'application/json';
  try {
    return await fetch(new URL(path, base), {
      method, headers, cache: 'no-store', credentials: 'omit',
      body: body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body),
    });
  } catch {
    change({lost: 'This node does not answer. The page shows its last answers.'});
    throw new Refused(0, {detail: 'The node does not answer.'});
  }
}

let changedAt = 0; // when this tab changed something last

/**
 * {status, text, data}. Throws Refused. `maxAge`: seconds, of an answer that another page may have had; `ifMatch`: the
 * version that a PUT replaces, else it is refused (412).
 */
export async function call(method, path, body, {maxAge = 0, ifMatch = ''} = {}) {
  const used = token();
  if (method !== 'GET') changedAt = Date.now();
  const response = await fetched(method, path, body, {maxAge, ifMatch});
  if (method !== 'GET') changedAt = Date.now();
  const text = await response.text();
  if (state.lost) change({lost: ''});
  let data = null;
  try {
    data = JSON.parse(text);
  } catch { /* no JSON: a proxy's page, perhaps */ }
  // /readyz lists its failed checks in an answer with 503.
  if (response.ok || (path === 'readyz' && data && data.status)) return {status: response.status, text, data};
  const refused = new Refused(response.status, data || {detail: `The answer was ${response.status}.`});
  if (response.status === 401) tokenIsMissing(refused.problem, used);
  throw refused;
}

// A list with the pages behind it, up to `most` of them.
async function wholeList(path, most, maxAge) {
  const first = await call('GET', path, undefined, {maxAge});
  const data = first.data;
  for (let i = 1; i < most && data && data.next_cursor; ++i) {
    const next = await call('GET', `${path}&cursor=${encodeURIComponent(data.next_cursor)}`, undefined, {maxAge});
    data.items.push(...next.data.items);
    if (next.data.missing) data.missing = [...new Set([...(data.missing || []), ...next.data.missing])];
    data.next_cursor = next.data.next_cursor;
  }
  return first;
}

// The node may answer with what it read for another page, up to four fifths of the interval ago. After a change by this page, a
// shared answer may show the state before it: until every read that began before the change has ended, none is accepted.
const kLongestRead = 10; // seconds; a read is cancelled then
const maxAgeOf = (interval) => {
  const age = Math.max(1, Math.floor(interval * 0.8));
  return Date.now() - changedAt > (age + kLongestRead) * 1000 ? age : 0;
};

// The last answers: a screen that was left shows them until it has asked again. Parts of a screen that ask the same at
// the same time share one request.
const kMostRemembered = 40;
const kReuseMs = 900;
const last = new Map(), underway = new Map();
export function forget() {
  last.clear();
  underway.clear();
}

function remember(path, answer) {
  last.delete(path);
  last.set(path, answer);
  if (last.size > kMostRemembered) last.delete(last.keys().next().value);
  return answer;
}

function shared(path, pages, isFresh, interval) {
  const recent = last.get(path);
  if (!isFresh && recent && Date.now() - recent.at < kReuseMs) return recent;
  if (!isFresh && underway.has(path)) return underway.get(path);
  const used = token();
  const asked = wholeList(path, pages, isFresh ? 0 : maxAgeOf(interval))
    .then(({data, text}) => (used === token() ? remember(path, {path, data, text, at: Date.now()}) : {data, text}))
    .finally(() => { if (underway.get(path) === asked) underway.delete(path); });
  underway.set(path, asked);
  return asked;
}

/**
 * The answer to a GET, again every few seconds while the page is seen. What was there stays until the next answer, so
 * that nothing jumps. `every`: so many times the reader's interval; `seconds`: that interval, whatever the reader chose;
 * `pages`: of a list so many are read at once. {data, text, error, isAbsent, reload}
 */
export function useGet(path, {every = 1, seconds = 0, pages = 1} = {}) {
  const [answer, setAnswer] = useState({path: null, data: null});
  const reload = useRef(() => {});
  useEffect(() => {
    if (!path) return undefined;
    let timer = 0, isAsking = false, isOver = false, isAgain = false;
    const interval = seconds || state.refresh * every;
    const ask = async ({isFresh = false} = {}) => {
      clearTimeout(timer);
      isAgain = isAgain || (isAsking && isFresh); // what is on its way may be from before the change
      if (isAsking || isOver) return;
      isAsking = true;
      let isAbsent = false;
      try {
        const {data, text} = await shared(path, pages, isFresh, interval);
        if (isOver) return;
        setAnswer({path, data, text});
      } catch (error) {
        isAbsent = error.isAbsent;
        if (!isOver) setAnswer((old) => ({...(old.path === path ? old : last.get(path) || {data: null}), path, error, isAbsent}));
      }
      isAsking = false;
      if (isAgain && !isOver) {
        isAgain = false;
        return void ask({isFresh: true});
      }
      if (!isOver && interval > 0 && !document.hidden && !isAbsent) timer = setTimeout(ask, interval * 1000);
    };
    const seen = () => (document.hidden ? clearTimeout(timer) : interval > 0 && ask());
    document.addEventListener('visibilitychange', seen);
    reload.current = () => ask({isFresh: true}); // after a change of one's own
    ask();
    return () => {
      isOver = true;
      clearTimeout(timer);
      document.removeEventListener('visibilitychange', seen);
    };
  }, [path, state.refresh, state.needsToken, every, seconds]);
  const known = answer.path === path ? answer : last.get(path) || {data: null, text: '', error: null, isAbsent: false};
  return {...known, reload: () => reload.current()};
}

/** Reads name and role of the token; repeats until the node answers. */
export async function findMe() {
  try {
    const {data} = await call('GET', 'v1/me');
    change({me: {name: data.name || '', role: data.role || 'viewer', isKnown: true}});
  } catch (error) {
    if (error.status !== 401) setTimeout(findMe, 2000);
  }
}

export function query(parameters) {
  const text = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) if (value) text.set(name, value);
  const all = text.toString();
  return all ? '?' + all : '';
}

/** As a shell would call it. */
export function curl(method, path, body) {
  const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;
  const auth = token() ? ' \\\n  -H "Authorization: Bearer $TOKEN"' : '';
  const data = body === undefined ? '' : ` \\\n  -H 'content-type: application/json' \\\n  -d ${quoted(JSON.stringify(body))}`;
  return `curl ${method === 'GET' ? '' : `-X ${method} `}${quoted(new URL(path, base).href)}${auth}${data}`;
}

/**
 * The text of one member of a JSON object, exactly as it was sent: numbers keep all their digits, which JSON.parse
 * would round. REQUIRES: `text` is valid JSON.
 */
export function memberText(text, name) {
  let depth = 0, start = -1;
  for (let i = 0; i < text.length; ++i) {
    const c = text[i];
    if (c === '"') {
      const from = i;
      for (++i; text[i] !== '"'; ++i) if (text[i] === '\\') ++i;
      if (depth === 1 && start < 0 && /^\s*:/.test(text.slice(i + 1, i + 20)) && JSON.parse(text.slice(from, i + 1)) === name) {
        i = text.indexOf(':', i);
        start = i + 1;
      }
    } else if (c === '{' || c === '[') {
      ++depth;
    } else if (c === '}' || c === ']') {
      if (--depth === 0 && start >= 0) return text.slice(start, i).trim();
    } else if (c === ',' && depth === 1 && start >= 0) {
      return text.slice(start, i).trim();
    }
  }
  return '';
}

// Calls of the REST interface, and data that refreshes itself.
import {useEffect, useRef, useState} from './vendor/preact.js';
import {change, setToken, state, token} from './state.js';

/** The folder of the page, whatever prefix a proxy has put before it. */
export const base = new URL('.', location.href).href;

const kNothing = 'There is nothing at this path.';

/** An answer that is not a success. `isAbsent`: this node does not know the path. */
export class Refused extends Error {
  constructor(status, problem) {
    super(problem.detail || problem.title || `The node answered ${status}.`);
    this.status = status;
    this.problem = problem;
    this.isAbsent = status === 404 && problem.detail === kNothing;
  }
}

// `used`: the token that the refused request had. A late answer says nothing about a token that was typed since.
function tokenIsMissing(problem, used) {
  if (token() !== used || (!used && state.needsToken)) return;
  setToken('');
  change({needsToken: true, tokenProblem: used ? `The token was refused: ${problem.detail || 'not known'}` : ''});
}

async function fetched(method, path, body, signal, maxAge) {
  const headers = {};
  if (maxAge) headers['Cache-Control'] = `max-age=${maxAge}`;
  if (token()) headers.Authorization = 'Bearer ' + token();
  if (body !== undefined) headers['Content-Type'] = 'application/json';
  try {
    return await fetch(new URL(path, base), {
      method, headers, signal, cache: 'no-store', credentials: 'omit',
      body: body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body),
    });
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    change({lost: 'This node does not answer. What is shown is the last it said.'});
    throw new Refused(0, {detail: 'The node does not answer.'});
  }
}

/** {status, text, data}. Throws Refused. */
export async function call(method, path, body, signal, maxAge = 0) {
  const used = token();
  const response = await fetched(method, path, body, signal, maxAge);
  const text = await response.text();
  if (state.lost) change({lost: ''});
  let data = null;
  try {
    data = JSON.parse(text);
  } catch { /* no JSON: a proxy's page, perhaps */ }
  // /readyz says with 503 what is wrong.
  if (response.ok || (path === 'readyz' && data && data.status)) return {status: response.status, text, data};
  const refused = new Refused(response.status, data || {detail: `The answer was ${response.status}.`});
  if (response.status === 401) tokenIsMissing(refused.problem, used);
  throw refused;
}

// The paths that this node knows, by its own description; null: not known yet.
let described = null;
export async function isKnown(path) {
  if (!described) described = call('GET', 'openapi.json').then(({data}) => new Set(Object.keys(data.paths)));
  try {
    return (await described).has('/' + path.replace(/\?.*/, ''));
  } catch {
    described = null; // asked again next time
    return true;
  }
}
const isOptional = (path) => path.startsWith('v1/reports/') || path === 'v1/me';
const absent = () => new Refused(404, {detail: kNothing});

// A list with the pages behind it, up to `most` of them.
async function wholeList(path, most, signal, maxAge) {
  const first = await call('GET', path, undefined, signal, maxAge);
  const data = first.data;
  for (let i = 1; i < most && data && data.next_cursor; ++i) {
    const next = await call('GET', `${path}&cursor=${encodeURIComponent(data.next_cursor)}`, undefined, signal, maxAge);
    data.items.push(...next.data.items);
    data.next_cursor = next.data.next_cursor;
  }
  return first;
}

/**
 * The answer to a GET, again every few seconds while the page is seen. What was there stays until the next answer, so
 * that nothing jumps. `pages`: of a list so many are read at once. {data, text, error, isAbsent, reload}
 */
export function useGet(path, {every = 1, pages = 1} = {}) {
  const [answer, setAnswer] = useState({path: null, data: null});
  const reload = useRef(() => {});
  useEffect(() => {
    if (!path) return undefined;
    const abort = new AbortController();
    let timer = 0, isAsking = false, isOver = false, isAgain = false;
    const ask = async ({isFresh = false} = {}) => {
      clearTimeout(timer);
      isAgain = isAgain || (isAsking && isFresh); // what is on its way may be from before the change
      if (isAsking || isOver) return;
      isAsking = true;
      let isAbsent = false;
      try {
        if (isOptional(path) && !(await isKnown(path))) throw absent();
        const {data, text} = await wholeList(path, pages, abort.signal, isFresh ? 0 : 1);
        if (!isOver) setAnswer({path, data, text});
      } catch (error) {
        isAbsent = error.isAbsent;
        if (!isOver) setAnswer((old) => ({...(old.path === path ? old : {data: null}), path, error, isAbsent}));
      }
      isAsking = false;
      if (isAgain && !isOver) {
        isAgain = false;
        return void ask({isFresh: true});
      }
      if (!isOver && state.refresh > 0 && every > 0 && !document.hidden && !isAbsent)
        timer = setTimeout(ask, state.refresh * every * 1000);
    };
    const seen = () => (document.hidden ? clearTimeout(timer) : ask());
    document.addEventListener('visibilitychange', seen);
    reload.current = () => ask({isFresh: true}); // after a change of one's own
    ask();
    return () => {
      isOver = true;
      clearTimeout(timer);
      abort.abort();
      document.removeEventListener('visibilitychange', seen);
    };
  }, [path, state.refresh, state.needsToken, every]);
  return answer.path === path ? {...answer, reload: () => reload.current()} :
                                {data: null, text: '', error: null, isAbsent: false, reload: () => reload.current()};
}

/** Who the reader is. A node without tokens, or without this call, lets everything be tried. */
export async function findMe() {
  try {
    if (!(await isKnown('v1/me'))) throw absent();
    const {data} = await call('GET', 'v1/me');
    change({me: {name: data.name || '', role: data.role || 'viewer', isKnown: true}});
  } catch (error) {
    if (error.status === 401) return;
    change({me: {name: '', role: 'admin', isKnown: false}});
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

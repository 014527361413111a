// What the browser tests stand on: a private PostgreSQL, nodes that are started and ended, and a browser that notes
// whatever a page does that it should not.
import assert from 'node:assert/strict';
import {execFileSync, spawn} from 'node:child_process';
import fs from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import path from 'node:path';
import {createRequire} from 'node:module';

const require = createRequire(process.env.TOCSIN_NPM + '/');
const {chromium} = require('playwright-core');
export const axeSource = fs.readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');

// A PostgreSQL by its name.
const postgres = (verb, name = 'browser', options = '') => execFileSync(process.env.TOCSIN_POSTGRES_SH, [verb, path.join(process.env.TOCSIN_TEST_DIR, name)],
  {encoding: 'utf8', env: {...process.env, TOCSIN_PG_OPTIONS: `${process.env.TOCSIN_PG_OPTIONS || ''} ${options}`}}).trim();
export const tocsin = (...words) => execFileSync(process.env.TOCSIN_BINARY, words, {encoding: 'utf8', stdio: 'pipe'});

export const kTokens = {admin: 'admin-token-1234567', producer: 'producer-token-12345', viewer: 'viewer-token-1234567'};

export async function eventually(what, check, {times = 150} = {}) {
  for (let i = 0; i < times; ++i) {
    const answer = await Promise.resolve().then(check).catch(() => false);
    if (answer) return answer;
    await new Promise((done) => { setTimeout(done, 100); });
  }
  throw new Error(`it never came to be: ${what}`);
}

export const freePort = () => new Promise((done) => {
  const server = net.createServer().listen(0, '127.0.0.1', () => {
    const {port} = server.address();
    server.close(() => done(port));
  });
});

/** One running node. */
export class Node {
  constructor(stand, port, options) {
    Object.assign(this, {stand, port, options, url: `http://127.0.0.1:${port}/`});
  }

  async start() {
    const {tokens, more = [], databases = [this.stand.database]} = this.options;
    const args = ['serve', ...databases.flatMap((url) => ['--database', url]), '--listen', `127.0.0.1:${this.port}`, '--allow-webhook', '127.0.0.0/8', ...more];
    if (tokens) {
      const file = path.join(process.env.TOCSIN_TEST_DIR, `tokens-${this.port}.toml`);
      fs.writeFileSync(file, Object.entries(tokens).map(([role, token]) => `[[token]]\nname = "${role}-name"\nrole = "${role}"\ntoken = "${token}"\n`).join('\n'));
      args.push('--token-file', file);
    }
    const log = fs.openSync(path.join(process.env.TOCSIN_TEST_DIR, `node-${this.port}.log`), 'a');
    this.process = spawn(process.env.TOCSIN_BINARY, args, {stdio: ['ignore', log, log]});
    this.ended = new Promise((done) => { this.process.on('exit', done); });
    await eventually('the node is ready', async () => (await fetch(this.url + 'readyz')).ok);
    return this;
  }

  async kill() {
    this.process.kill('SIGKILL');
    await this.ended;
  }

  async call(method, where, body, token) {
    const headers = {...(body === undefined ? {} : {'content-type': 'application/json'}), ...(token ? {authorization: `Bearer ${token}`} : {})};
    const reply = await fetch(this.url + where, {method, headers, body: body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body)});
    const text = await reply.text();
    return {status: reply.status, text, data: text.startsWith('{') ? JSON.parse(text) : null};
  }

  /** The id of a new job. */
  async job(biz_type, biz_id, more = {}, token) {
    const {status, text, data} = await this.call('POST', 'v1/jobs', {biz_type, biz_id, delay_ms: 3_600_000, ...more}, token);
    if (status !== 201) throw new Error(`a job was refused: ${text}`);
    return data.job_id;
  }
}

/**
 * A page that notes what must not happen: errors, violations of the policy, requests to other hosts. end() throws if any did.
 * options: width, scheme, zone (of the browser), token, mayRefuse (failed requests are no offence).
 */
export async function openPage(stand, options = {}) {
  const context = await stand.browser.newContext({viewport: {width: options.width || 1280, height: 900}, colorScheme: options.scheme || 'light', timezoneId: options.zone, reducedMotion: 'reduce'});
  // While the page is written: its files as they are in this folder, without a build.
  const files = process.env.TOCSIN_PAGE_FILES;
  if (files) {
    await context.route(/\/assets\//, (route) => route.fulfill({path: path.join(files, new URL(route.request().url()).pathname.replace(/.*\/assets\/[^/]+\//, ''))}));
    await context.route((url) => url.pathname === '/', (route) => route.fulfill({contentType: 'text/html', body: fs.readFileSync(path.join(files, 'index.html'), 'utf8').replaceAll('{{assets}}', 'assets/x')}));
  }
  const page = await context.newPage();
  page.setDefaultTimeout(45_000);
  const offences = [];
  page.on('console', (message) => {
    if (message.type() !== 'error') return;
    // A refusal that a test asks for is no mistake of the page.
    if (options.mayRefuse && message.text().startsWith('Failed to load resource')) return;
    offences.push(`console: ${message.text()} ${message.location().url}`);
  });
  page.on('pageerror', (error) => offences.push(`error: ${error.stack}`));
  page.on('request', (request) => {
    if (!request.url().startsWith('http://127.0.0.1:') && !request.url().startsWith('data:')) offences.push(`elsewhere: ${request.url()}`);
  });
  await page.addInitScript(() => document.addEventListener('securitypolicyviolation', (event) => console.error(`policy: ${event.violatedDirective} ${event.blockedURI}`)));
  if (options.token) await page.addInitScript((token) => { if (!sessionStorage.getItem('tocsin.token')) sessionStorage.setItem('tocsin.token', token); }, options.token);
  await page.addInitScript(() => { if (!localStorage.getItem('tocsin.refresh')) localStorage.setItem('tocsin.refresh', '2'); });
  const end = async () => {
    await context.close();
    assert.deepEqual(offences, []);
  };
  return Object.assign(page, {offences, end});
}

/** Answers below /prefix/ what `target` answers below /. */
export async function prefixProxy(target, prefix) {
  const server = http.createServer((request, response) => {
    if (!request.url.startsWith(prefix)) return response.writeHead(404).end();
    const up = http.request(new URL(request.url.slice(prefix.length - 1), target), {method: request.method, headers: {...request.headers, host: new URL(target).host}}, (reply) => {
      response.writeHead(reply.statusCode, reply.headers);
      reply.pipe(response);
    });
    request.pipe(up);
  });
  await new Promise((done) => { server.listen(0, '127.0.0.1', done); });
  return {url: `http://127.0.0.1:${server.address().port}${prefix}`, close: () => server.close()};
}

export class Stand {
  async start() {
    this.database = postgres('start');
    tocsin('migrate', '--database', this.database);
    this.browser = await chromium.launch({executablePath: '/usr/bin/chromium', args: ['--no-sandbox', '--disable-gpu']});
    this.nodes = [];
    this.more = []; // names of further servers
    return this;
  }

  /** The URL of a further server, which lets shards move. */
  server(name) {
    if (!this.more.includes(name)) this.more.push(name);
    return postgres('start', name, '-c wal_level=logical');
  }
  stopServer(name) { postgres('stop-immediate', name); }

  async node(options = {}) {
    const node = new Node(this, await freePort(), options);
    this.nodes.push(node);
    return node.start();
  }

  sql(text, database = this.database) {
    return execFileSync('psql', ['-XAtq', '-d', database, '-c', text], {encoding: 'utf8'}).trim();
  }
  stopDatabase() { postgres('stop-immediate'); }
  startDatabase() { postgres('start'); }

  async end() {
    if (this.browser) await this.browser.close();
    for (const node of this.nodes || []) node.process.kill('SIGKILL');
    for (const name of ['browser', ...(this.more || [])]) {
      try {
        postgres('remove', name);
      } catch { /* it never came up */ }
    }
  }
}

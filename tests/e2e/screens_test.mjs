// What each screen shows, against what the node says; tables as files; and that a refresh moves nothing.
import assert from 'node:assert/strict';
import {execFileSync} from 'node:child_process';
import fs from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import {eventually, openPage} from './stand.mjs';
import {busy, findings, visit} from './looks_test.mjs';

/** A receiver that refuses everything, quickly: an answer is no reason for a pause of the endpoint. */
export async function refusing(status = 422) {
  const server = http.createServer((request, response) => { request.resume(); response.writeHead(typeof status === 'function' ? status() : status).end(); });
  await new Promise((done) => { server.listen(0, '127.0.0.1', done); });
  return {url: `http://127.0.0.1:${server.address().port}`, close: () => server.close()};
}

async function fileOf(page, button) {
  const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', {name: button, exact: true}).click()]);
  return fs.readFileSync(await download.path(), 'utf8');
}

export async function ACalendarFieldLeadsToItsJobs(stand) {
  const node = await busy(stand);
  await node.call('PUT', 'v1/types/calendar.one', {handler: {kind: 'noop'}});
  const at = new Date(Math.floor(Date.now() / 3_600_000) * 3_600_000 + 30 * 3_600_000 + 600_000).toISOString();
  for (let i = 0; i < 4; ++i) await node.job('calendar.one', `calendar-${i}`, {delay_ms: undefined, action_time: at});
  await node.job('calendar.one', 'at another time', {delay_ms: 50 * 3_600_000});
  await eventually('they are counted', async () => (await node.call('GET', 'v1/reports/horizon?type=calendar.one')).data.items.some((row) => row.width === 'hour' && row.n === 4), {times: 1200});
  const page = await openPage(stand);
  await visit(page, node.url + '?screen=calendar&type=calendar.one');
  const field = page.getByRole('link', {name: `${at.slice(0, 10)} ${at.slice(11, 13)}:00: 4`});
  assert.equal(await field.innerText(), '4');
  await page.getByText(/by hour, .*, counted /).waitFor();
  await field.click();
  await eventually('its four jobs are listed', async () => (await page.locator('tbody tr').count()) === 4);
  const place = new URL(page.url()).searchParams;
  assert.deepEqual([place.get('screen'), place.get('biz_type'), place.get('status')], ['jobs', 'calendar.one', 'pending']);
  await page.end();
}

// The page with a horizon of these hours and numbers, in a zone of the browser, at a moment.
async function calendarIn(stand, zone, now, due) {
  const node = await busy(stand);
  const page = await openPage(stand, {zone});
  await page.clock.setFixedTime(now);
  await page.addInitScript(() => localStorage.setItem('tocsin.zone', 'local'));
  const items = Object.entries(due).map(([slot, n]) => ({width: 'hour', slot, biz_type: 'order.unpaid', n, low: n, high: n, is_exact: true, counted_at: now}));
  await page.route('**/v1/reports/horizon*', (route) => route.fulfill({json: {items, next_cursor: null}}));
  await visit(page, node.url + '?screen=calendar');
  return page;
}

export async function HoursOfTheCalendarBeginWhereTheyDoInTheZone(stand) {
  for (const [zone, slot, name, head] of [['Asia/Kolkata', '2026-11-24T20:00:00Z', '2026-11-25 01:30', '01:30'], ['Asia/Kathmandu', '2026-11-24T20:00:00Z', '2026-11-25 01:45', '01:45'], ['Europe/Berlin', '2026-11-24T20:00:00Z', '2026-11-24 21:00', '21']]) {
    const page = await calendarIn(stand, zone, '2026-11-24T10:00:00Z', {[slot]: 7});
    const field = page.getByRole('link', {name: `${name}: 7`, exact: true});
    const column = await field.evaluate((link) => [...link.closest('tr').children].indexOf(link.closest('td')));
    assert.equal(await page.locator('.heat').first().locator('thead th').nth(column).innerText(), head);
    assert.equal(new URLSearchParams(await field.getAttribute('href')).get('from'), '2026-11-24T20:00:00.000Z');
    assert.deepEqual(await findings(page), []);
    await page.end();
  }
}

export async function TheHourThatComesTwiceHasTwoFields(stand) {
  const page = await calendarIn(stand, 'Europe/Berlin', '2026-10-24T10:00:00Z', {'2026-10-25T00:00:00Z': 3, '2026-10-25T01:00:00Z': 5});
  const from = async (name) => new URLSearchParams(await page.getByRole('link', {name, exact: true}).getAttribute('href')).get('from');
  assert.equal(await from('2026-10-25 02:00: 3'), '2026-10-25T00:00:00.000Z');
  assert.equal(await from('2026-10-25 02:00 again: 5'), '2026-10-25T01:00:00.000Z');
  assert.equal(await page.locator('.heat').first().locator('thead th').count(), 1 + 25);
  await page.end();
  const spring = await calendarIn(stand, 'Europe/Berlin', '2026-03-28T10:00:00Z', {'2026-03-29T01:00:00Z': 4});
  await spring.getByRole('link', {name: '2026-03-29 03:00: 4', exact: true}).waitFor();
  assert.equal(await spring.locator('.heat').first().locator('thead th').count(), 1 + 24);
  await spring.end();
}

export async function AReadThatTakesTooLongIsSaid(stand) {
  const node = await busy(stand);
  const page = await openPage(stand, {mayRefuse: true});
  let isSlow = true;
  await page.route('**/v1/jobs?*', (route) => (isSlow ? route.fulfill({status: 503, contentType: 'application/problem+json',
    json: {status: 503, title: 'Service Unavailable', detail: 'This took too long. Ask for less: of jobs by biz_id, or by biz_type with status, from and to; of a report by type, from and to.'}}) : route.continue()));
  await visit(page, node.url + '?screen=jobs');
  const more = page.getByText('There is more than could be read within the time limit.');
  await more.waitFor();
  assert.deepEqual(await findings(page), []);
  isSlow = false;
  await page.locator('tbody tr').first().waitFor();
  isSlow = true;
  await page.locator('.note', {hasText: 'Not up to date:'}).and(page.locator('.note', {hasText: 'more than could be read'})).waitFor();
  assert.ok((await page.locator('tbody tr').count()) > 0, 'what was read stays');
  await page.end();
}

export async function ACountThatEndsAtItsCapIsMore(stand) {
  const node = await busy(stand);
  const page = await openPage(stand);
  const backlog = await node.call('GET', 'v1/reports/backlog?limit=1000');
  const items = backlog.data.items.map((row) => (row.biz_type === 'paused.one' ? {...row, due: 2000, is_exact: false, oldest_age_ms: 60_000} : row));
  await page.route('**/v1/reports/backlog*', (route) => route.fulfill({json: {...backlog.data, items}}));
  await visit(page, node.url + '?screen=types');
  await page.locator('tbody tr', {hasText: 'paused.one'}).getByText('more than 2,000').waitFor();
  await visit(page, node.url + '?screen=types&type=paused.one');
  await page.getByText('More than 2,000 jobs are overdue').waitFor();
  await page.end();
}

export async function DeadLettersAreThoseThatAreDeadNow(stand) {
  const node = await busy(stand);
  const receiver = await refusing();
  await node.call('PUT', 'v1/types/dead.now', {handler: {kind: 'webhook', url: receiver.url}, max_attempts: 1});
  const ids = [];
  for (let i = 0; i < 3; ++i) ids.push(await node.job('dead.now', `dead-${i}`, {delay_ms: 0}));
  await eventually('three are dead', async () => (await node.call('GET', 'v1/jobs?biz_type=dead.now&status=dead')).data.items.length === 3);
  const page = await openPage(stand);
  await visit(page, node.url + '?screen=dead&type=dead.now');
  await page.getByRole('heading', {name: '3 dead now of dead.now'}).waitFor();
  const row = page.locator('tbody tr', {hasText: 'answered 422 Unprocessable Entity'});
  await row.waitFor();
  assert.match(await row.locator('td').nth(2).innerText(), /^3\b/);
  await node.call('POST', 'v1/types/dead.now/pause');
  await node.call('POST', `v1/jobs/${ids[0]}/retry`);
  await page.getByRole('heading', {name: '2 dead now of dead.now'}).waitFor();
  await eventually('the group counts two', async () => /^2\b/.test(await row.locator('td').nth(2).innerText()));
  assert.ok(ids.slice(1).includes(await row.locator('td').nth(6).innerText()), 'the sample is dead now');
  await page.end();
  receiver.close();
}

// Other nodes have shards of the database, too: so many jobs that some are this node's.
const some = (node, type) => node.call('POST', 'v1/jobs/batch', {jobs: Array.from({length: 20}, (_, i) => ({biz_type: type, biz_id: `${type}-${i}`, delay_ms: 0}))});

export async function EndpointsAreShownWithTheirLastError(stand) {
  const node = await busy(stand);
  const closed = await refusing();
  closed.close(); // nobody listens there any more
  await node.call('PUT', 'v1/types/endpoint.closed', {handler: {kind: 'webhook', url: closed.url}, max_attempts: 1});
  await some(node, 'endpoint.closed');
  const page = await openPage(stand);
  await visit(page, node.url + '?screen=cluster');
  const row = page.getByRole('region', {name: 'Endpoints'}).locator('tbody tr', {hasText: new URL(closed.url).host});
  await row.getByText('Connection refused').waitFor();
  await row.getByText(/unavailable|paused|one at a time/).waitFor();
  await page.end();
}

// As much of a Redis server as one that publishes needs.
async function redis() {
  const open = new Set();
  const server = net.createServer((socket) => {
    open.add(socket);
    socket.on('error', () => {}).on('close', () => open.delete(socket));
    socket.on('data', (data) => {
      for (const [verb] of data.toString('latin1').matchAll(/\b(?:PING|XADD)\r\n/g)) socket.write(verb.startsWith('PING') ? '+PONG\r\n' : '$3\r\n1-1\r\n');
    });
  });
  await new Promise((done) => { server.listen(0, '127.0.0.1', done); });
  return {port: server.address().port, close: () => { server.close(); for (const socket of open) socket.destroy(); }};
}

export async function BrokersAreShownAsTheyAnswer(stand) {
  const node = await stand.node();
  const page = await openPage(stand);
  await visit(page, node.url + '?screen=cluster');
  await page.getByText('No type publishes to a broker').waitFor();
  const broker = await redis();
  const up = `127.0.0.1:${broker.port}`, down = '127.0.0.2:1'; // no program listens on port 1
  for (const [type, address] of [['broker.up', up], ['broker.down', down]]) {
    await node.call('PUT', `v1/types/${type}`, {handler: {kind: 'redis', url: `redis://${address}`, stream: 'timeouts'}, max_attempts: 1000, backoff: {base_ms: 100, max_ms: 100}});
    await some(node, type);
  }
  await eventually('all are published', async () => (await node.call('GET', 'v1/jobs?biz_type=broker.up&status=done')).data.items.length === 20);
  const brokers = page.getByRole('region', {name: 'Brokers'});
  const row = (address) => brokers.locator('tbody tr', {hasText: address});
  await row(up).getByText(/answers|idle/).waitFor();
  await row(up).getByText('redis', {exact: true}).waitFor();
  await row(down).getByText('unavailable').waitFor();
  await row(down).getByText('Connection refused').waitFor();
  broker.close();
  await some(node, 'broker.up'); // a broker that has gone is noticed by the next message
  await row(up).getByText('unavailable').waitFor();
  assert.equal(await page.getByRole('region', {name: 'Endpoints'}).locator('tbody tr', {hasText: up}).count(), 0);
  assert.deepEqual(await findings(page), []);
  for (const type of ['broker.up', 'broker.down']) await node.call('POST', `v1/types/${type}/pause`);
  await page.end();
}

export async function AJobSaysWhyItHasNotFiredAndItsCommandsWork(stand) {
  const node = await busy(stand);
  const receiver = await refusing(500);
  await node.call('PUT', 'v1/types/job.screen', {handler: {kind: 'webhook', url: receiver.url}, max_attempts: 5, backoff: {base_ms: 3_600_000, max_ms: 3_600_000}});
  const id = await node.job('job.screen', 'job screen', {delay_ms: 0}), other = await node.job('job.screen', 'job screen');
  await eventually('one attempt has failed', async () => (await node.call('GET', `v1/jobs/${id}`)).data.errors.length === 1);
  const page = await openPage(stand);
  await visit(page, `${node.url}?screen=job&id=${id}`);
  await page.locator('.verdict', {hasText: 'Waits for its next attempt at'}).waitFor();
  await page.locator('.timeline .failed', {hasText: 'Attempt 1 failed after'}).and(page.locator('.failed', {hasText: '500 Internal Server Error'})).waitFor();
  await page.locator('.timeline .ahead', {hasText: 'Next attempt'}).waitFor();
  assert.equal(await page.locator('.machine path.taken').count(), 2); // started, and to be started again
  await page.getByRole('region', {name: 'Other jobs of this key'}).locator(`a[href="?screen=job&id=${other}"]`).first().waitFor();
  const commands = await page.getByRole('region', {name: 'Commands'}).locator('.curl pre').allInnerTexts();
  assert.equal(commands.length, 6);
  for (const [label, reply] of [['this job', '"biz_id":"job screen"'], ['why has it', 'Waits for its next attempt'], ['reschedule', '"action_time"'], ['cancel', '"cancelled"']])
    assert.ok(execFileSync('bash', ['-c', commands.find((text) => text.startsWith(`# ${label}`))], {encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore']}).includes(reply), label);
  await page.locator('.machine .now', {hasText: 'cancelled'}).waitFor();
  await page.end();
  receiver.close();
}

export async function ManyTypesAreFoundAndPutInOrder(stand) {
  const node = await busy(stand);
  for (let i = 0; i < 13; ++i) await node.call('PUT', `v1/types/many.${i}`, {handler: {kind: 'noop'}});
  const page = await openPage(stand);
  await visit(page, node.url + '?screen=types');
  const names = () => page.locator('tbody tr td:first-child a').allInnerTexts();
  await page.getByLabel('Find a type').fill('MAIL');
  assert.deepEqual(await names(), ['mail.remind']);
  await page.getByRole('heading', {name: /^1 of \d+ types$/}).waitFor();
  await page.getByLabel('Find a type').fill('no such type');
  await page.getByText('No type has this in its name.').waitFor();
  await page.getByLabel('Find a type').fill('');
  const byName = await names();
  await page.getByRole('button', {name: 'Most urgent'}).click();
  await eventually('those with deaths come before those without', async () => { const all = await names(); return all.indexOf('mail.remind') < all.indexOf('many.0'); });
  assert.deepEqual((await names()).sort(), [...byName].sort());
  assert.deepEqual(await findings(page), []);
  for (let i = 0; i < 13; ++i) await node.call('DELETE', `v1/types/many.${i}`);
  await page.end();
}

export async function EachAttemptHasItsStartItsLengthAndItsNode(stand) {
  const node = await busy(stand);
  let calls = 0;
  const receiver = await refusing(() => (++calls === 1 ? 500 : 200));
  await node.call('PUT', 'v1/types/attempts', {handler: {kind: 'webhook', url: receiver.url}, max_attempts: 5, backoff: {delays_ms: [100]}});
  const id = await node.job('attempts', 'attempts', {delay_ms: 0});
  const job = await eventually('it is done', async () => { const {data} = await node.call('GET', `v1/jobs/${id}`); return data.status === 'done' && data; });
  const page = await openPage(stand);
  await visit(page, `${node.url}?screen=job&id=${id}`);
  const [error] = job.errors;
  for (const [words, start, end, at] of [[/Attempt 1 failed after [\d.]+ m?s on (.*), started .* after the deadline/, error.started_at, error.at, error.node], [/Attempt 2 done in [\d.]+ m?s on (.*)/, job.last_started_at, job.finished_at, job.node]]) {
    const entry = page.locator('.timeline li', {hasText: words});
    assert.equal((await entry.locator('div').first().innerText()).match(words)[1], at);
    assert.deepEqual(await entry.locator('time').evaluateAll((times) => times.map((time) => time.getAttribute('datetime'))), [start, end]);
  }
  assert.equal(job.started_at, error.started_at);
  assert.ok(error.at <= job.last_started_at, 'the second began after the first had ended');
  receiver.close();
  await page.end();
}

export async function ATypeSaysWhatIsWrongWithIt(stand) {
  const node = await busy(stand);
  const page = await openPage(stand);
  await visit(page, node.url + '?screen=types&type=paused.one');
  await page.getByText(/^Paused until 2040-01-01 00:00:00 UTC\.$/).waitFor();
  await page.getByText(/jobs are overdue and wait for it/).waitFor();
  await visit(page, node.url + '?screen=types');
  const row = page.locator('tbody tr', {hasText: 'mail.remind'});
  await eventually('three are dead', async () => (await row.getByRole('link', {name: '3', exact: true}).count()) === 1);
  await page.locator('svg.spark').first().waitFor();
  await page.end();
}

export async function ATypeWhoseAttemptsFailSaysSo(stand) {
  const node = await busy(stand);
  const receiver = await refusing(500);
  await node.call('PUT', 'v1/types/all.fails', {handler: {kind: 'webhook', url: receiver.url}, max_attempts: 50, backoff: {delays_ms: [3_600_000]}});
  await some(node, 'all.fails');
  const page = await openPage(stand);
  await visit(page, node.url + '?screen=types&type=all.fails');
  await page.locator('.verdict', {hasText: 'Its attempts fail.'}).and(page.locator('.verdict', {hasText: /\d\d attempts of the last minutes failed and are tried again; 0 jobs were done\./})).waitFor();
  assert.deepEqual(await findings(page), []);
  await visit(page, node.url);
  await page.locator('.verdict li', {hasText: /all\.fails is failing: \d\d attempts of the last 15 minutes failed/}).waitFor();
  await node.call('POST', 'v1/types/all.fails/pause');
  await page.locator('.verdict li', {hasText: 'all.fails is failing'}).waitFor({state: 'hidden'});
  await page.end();
  receiver.close();
}

export async function APageOfAReportThatIsGoneIsTheFirstOne(stand) {
  const node = await busy(stand);
  const page = await openPage(stand, {mayRefuse: true});
  const {next_cursor: cursor} = (await node.call('GET', 'v1/reports/backlog?limit=1')).data;
  await visit(page, `${node.url}?screen=reports&report=backlog&type=paused.one&cursor=${cursor}`); // that of another filter
  await page.waitForURL((url) => !url.searchParams.has('cursor'));
  await page.locator('tbody tr', {hasText: 'paused.one'}).waitFor();
  await page.end();
}

export async function ATypeWhoseJobsNeverRunHasNoLimitOfThem(stand) {
  const node = await busy(stand);
  const page = await openPage(stand);
  for (const [type, n] of [['order.unpaid', 0], ['mail.remind', 1]]) {
    await visit(page, `${node.url}?screen=types&type=${type}`);
    assert.equal(await page.getByRole('rowheader', {name: 'Running at once'}).count(), n, type);
    await page.getByRole('button', {name: 'Limits…'}).click();
    await page.getByLabel('Starts per second (rate_per_s)').waitFor();
    assert.equal(await page.getByLabel('Running at once (max_running)').count(), n, type);
  }
  await page.end();
}

export async function TablesBecomeFiles(stand) {
  const node = await busy(stand);
  await node.call('PUT', 'v1/types/pulled.csv', {handler: {kind: 'pull'}, max_attempts: 1});
  const id = await node.job('pulled.csv', 'csv', {delay_ms: 0});
  const {data} = await node.call('POST', 'v1/types/pulled.csv/lease', {max: 1, wait_ms: 5000});
  await node.call('POST', 'v1/leases/nack', {items: [{job_id: id, lease_token: data.items[0].lease_token, error: '=HYPERLINK("http://evil.example","a,b")'}]});
  const page = await openPage(stand);
  await visit(page, node.url + '?screen=dead&type=pulled.csv');
  const dead = await fileOf(page, 'CSV: Dead letters');
  assert.match(dead, /^\ufeffType,Reason,Dead now,Share,/);
  assert.ok(dead.includes(`pulled.csv,"'=HYPERLINK(""http://evil.example"",""a,b"")",1,1,`), dead);
  await visit(page, node.url + '?screen=types');
  await page.locator('tbody tr').first().waitFor();
  const types = (await fileOf(page, 'CSV: Types')).trim().split('\r\n');
  assert.equal(types.length - 1, (await node.call('GET', 'v1/types?limit=1000')).data.items.length);
  await visit(page, node.url + '?screen=reports&report=backlog');
  await page.locator('tbody tr').first().waitFor();
  const backlog = await fileOf(page, 'Download CSV');
  assert.match(backlog, /^\ufeffbiz_type,due,/);
  assert.match(backlog, /\r\npaused\.one,\d+,/);
  await page.end();
}

export async function EveryReportIsATable(stand) {
  const node = await busy(stand);
  const page = await openPage(stand);
  await visit(page, node.url + '?screen=reports');
  const choice = page.locator('main select').first();
  const names = await choice.locator('option').evaluateAll((all) => all.map((option) => option.value));
  assert.ok(names.length >= 10);
  for (const name of names) {
    await choice.selectOption(name);
    if (name !== 'day') await page.waitForURL(new RegExp(`report=${name}`));
    await page.locator('main table, main .panel p.muted').first().waitFor();
    const text = await page.locator('main').innerText();
    assert.doesNotMatch(text, /undefined|NaN|\[object|could not be read/, name);
  }
  await page.end();
}

export async function ARefreshMovesNothing(stand) {
  const node = await busy(stand);
  const page = await openPage(stand);
  await page.addInitScript(() => {
    window.shifts = [];
    // Elements alone: the text of a number on the right begins elsewhere when it has another digit.
    const elements = (entry) => entry.sources.map((source) => source.node).filter((where) => where instanceof Element);
    new PerformanceObserver((list) => window.shifts.push(...list.getEntries().filter((entry) => elements(entry).length > 0).map((entry) => `${entry.value} ${elements(entry).map((where) => where.outerHTML.slice(0, 80))}`))).observe({type: 'layout-shift', buffered: true});
  });
  // How long an age reads depends on the moment; here short and long ones follow each other.
  let reads = 0;
  const changed = async (route, change) => {
    const response = await route.fetch(), data = await response.json();
    ++reads;
    data.items.forEach(change);
    await route.fulfill({response, json: data});
  };
  await page.route('**/v1/nodes?*', (route) => changed(route, (item) => { item.heartbeat_age_ms = [9, 132, 1100, 59_000][reads % 4]; }));
  await page.route('**/v1/jobs?*', (route) => changed(route, (item) => {
    if (item.status === 'pending') item.fire_at = new Date(Date.now() + [-9, 86_370, -86_370, 3599][reads % 4] * 1000).toISOString();
  }));
  const [{job_id: dead}] = (await node.call('GET', 'v1/jobs?status=dead')).data.items, [{job_id: pending}] = (await node.call('GET', 'v1/jobs?status=pending')).data.items;
  for (const screen of ['overview', 'types', 'types&type=order.unpaid', 'jobs', `job&id=${dead}`, `job&id=${pending}`, 'dead', 'calendar', 'cluster', 'reports']) {
    let answers = 0;
    await visit(page, `${node.url}?screen=${screen}`);
    await eventually('it is drawn', async () => (await page.getByText('Reading…').count()) === 0);
    await page.evaluate(() => new Promise((done) => { requestAnimationFrame(() => requestAnimationFrame(done)); }));
    await page.evaluate(() => { window.shifts.length = 0; });
    page.on('response', () => ++answers);
    await eventually('it has refreshed', () => answers >= 4);
    await page.evaluate(() => new Promise((done) => { requestAnimationFrame(() => requestAnimationFrame(done)); }));
    assert.deepEqual(await page.evaluate(() => window.shifts), [], screen);
    page.removeAllListeners('response');
  }
  await page.end();
}

// Every screen: quiet, accessible, within the window, and what callers have sent is text.
import assert from 'node:assert/strict';
import {axeSource, eventually, openPage, prefixProxy} from './stand.mjs';

const kScreens = {overview: '', types: '?screen=types', jobs: '?screen=jobs', dead: '?screen=dead', calendar: '?screen=calendar', cluster: '?screen=cluster', reports: '?screen=reports'};
const kLong = 'subscription.renewal.reminder.of.the.second.kind';
let shared;

/** A node whose every screen has something to show. */
export async function busy(stand) {
  if (shared) return shared;
  const node = await stand.node();
  const refusing = 'http://127.0.0.1:9/nothing';
  await node.call('PUT', 'v1/types/order.unpaid', {handler: {kind: 'noop'}});
  await node.call('PUT', 'v1/types/mail.remind', {handler: {kind: 'webhook', url: refusing}, max_attempts: 1});
  await node.call('PUT', 'v1/types/paused.one', {handler: {kind: 'noop'}});
  await node.call('PUT', `v1/types/${kLong}`, {handler: {kind: 'webhook', url: 'http://127.0.0.1:9/a/path/that/has/no/place/to/break/in/it'}});
  await node.call('POST', 'v1/types/paused.one/pause', {until: '2040-01-01T00:00:00Z'});
  const jobs = Array.from({length: 120}, (_, i) => ({biz_type: i % 5 ? 'order.unpaid' : 'paused.one', biz_id: `order-${i}`, delay_ms: i % 3 ? (20 + i) * 60_000 : 0})); // none fires while a screen is looked at
  await node.call('POST', 'v1/jobs/batch', {jobs});
  for (let i = 0; i < 3; ++i) await node.job('mail.remind', `mail-${i}`, {delay_ms: 0});
  await eventually('mails are dead', async () => (await node.call('GET', 'v1/jobs?status=dead')).data.items.length === 3);
  await eventually('their deaths are counted', async () => (await node.call('GET', 'v1/overview')).data.reasons.length > 0);
  shared = node;
  return node;
}

/** The screen is there, and has been read once. */
export async function visit(page, url) {
  await page.goto(url);
  await page.locator('main h1').waitFor();
  await page.waitForLoadState('networkidle');
}

/** What axe-core finds, a line each. */
export async function findings(page) {
  await page.evaluate(axeSource);
  const {violations} = await page.evaluate(() => axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']}));
  return violations.flatMap((each) => each.nodes.map((node) => `${each.id}: ${node.html.slice(0, 160)} ${node.failureSummary.split('\n').slice(1).join(' ')}`));
}

/** The same in light and in dark. */
export async function findingsInBoth(page) {
  await page.emulateMedia({colorScheme: 'dark'});
  const dark = await findings(page);
  await page.emulateMedia({colorScheme: 'light'});
  return [...dark, ...(await findings(page))];
}

export const isTooWide = (page) => page.evaluate(() => document.documentElement.scrollWidth > innerWidth);

/** Texts of tiles that have no room. */
export const cutTexts = (page) => page.evaluate(() => [...document.querySelectorAll('.tile dt, .tile dd')].filter((each) => each.scrollWidth > each.clientWidth).map((each) => each.textContent));

// 640: a window of 1280 at a zoom of 200 %. options: those of the page.
async function lookAt(stand, node, addresses, where, options = {}) {
  const wrong = [];
  for (const [scheme, width] of [['light', 1280], ['dark', 1280], ['light', 390], ['dark', 390], ['light', 640], ['light', 1920], ['dark', 1920]]) {
    const page = await openPage(stand, {...options, scheme, width});
    for (const [name, address] of Object.entries(addresses)) {
      await visit(page, node.url + address);
      const tag = `${where} ${name} ${scheme} ${width}`;
      for (const finding of await findings(page)) wrong.push(`${tag}: ${finding}`);
      if (await isTooWide(page)) wrong.push(`${tag}: wider than the window`);
      for (const text of width < 1280 ? [] : await cutTexts(page)) wrong.push(`${tag}: "${text}" is cut`);
      if (/undefined|NaN|\[object/.test(await page.locator('main').innerText())) wrong.push(`${tag}: shows undefined, NaN or an object`);
    }
    wrong.push(...page.offences.splice(0).map((offence) => `${where} ${scheme} ${width}: ${offence}`));
    await page.end();
  }
  assert.deepEqual(wrong, []);
}

// What a screen without data says.
const kLessons = {
  dead: ['Nothing is dead. A job dies when its attempts are used up or its handler refuses it for good'],
  calendar: ['Nothing is due in this time, as far as it has been counted; new jobs appear after a minute or two. Each field is an hour', 'Each field is a day'],
  cluster: ['This node delivers no webhook yet.', 'No type publishes to a broker', 'No shard is moving. tocsin shard move starts a move.', 'Nothing is recorded yet. With tokens, every change is recorded here with who made it and why.'],
  reports: ['Nothing in this range. Events are counted from the first job on and kept for 400 days.'],
};

// First by its name: the others fill the database.
export async function AnEmptyInstallationTeachesAndIsAccessible(stand) {
  const node = await stand.node();
  await lookAt(stand, node, kScreens, 'empty');
  await lookAt(stand, node, {type: '?screen=types&type=no.such.type', job: '?screen=job&id=1'}, 'unknown', {mayRefuse: true});
  const page = await openPage(stand);
  for (const address of ['', '?screen=types', '?screen=jobs']) {
    await visit(page, node.url + address);
    await page.locator('pre', {hasText: `curl -X ${address === '?screen=types' ? 'PUT' : ''}`}).first().waitFor();
  }
  for (const [screen, texts] of Object.entries(kLessons)) {
    await visit(page, `${node.url}?screen=${screen}`);
    for (const text of texts) await page.locator('main p', {hasText: text}).first().waitFor();
  }
  await page.end();
  await node.call('PUT', 'v1/types/order.unpaid', {handler: {kind: 'noop'}});
  await lookAt(stand, node, {type: '?screen=types&type=order.unpaid', calendar: '?screen=calendar&type=order.unpaid', dead: '?screen=dead&type=order.unpaid'}, 'without jobs');
}

export async function BusyScreensAreQuietAndAccessible(stand) {
  const node = await busy(stand);
  const [dead] = (await node.call('GET', 'v1/jobs?status=dead')).data.items, [pending] = (await node.call('GET', 'v1/jobs?status=pending')).data.items;
  await lookAt(stand, node, {...kScreens, type: '?screen=types&type=order.unpaid', 'long type': `?screen=types&type=${kLong}`, 'paused type': '?screen=types&type=paused.one', 'dead job': `?screen=job&id=${dead.job_id}`, 'pending job': `?screen=job&id=${pending.job_id}`, 'no job': '?screen=jobs&biz_id=none'}, 'busy');
}

const kTypeScreen = '?screen=types&type=order.unpaid';
const review = async (dialog) => {
  await dialog.getByLabel('Settings (JSON)').fill('{"handler": {"kind": "noop"}, "max_attempts": 3}');
  await dialog.getByRole('button', {name: 'Review changes'}).click();
  await dialog.getByRole('group', {name: 'Changes'}).waitFor();
};
const preview = async (dialog) => {
  await dialog.getByRole('button', {name: 'Preview'}).click();
  await dialog.getByText('jobs match now.').waitFor();
  await dialog.getByLabel(/1234/).waitFor();
};
// Address, the button that opens it, and what is done in it before it is looked at.
const kDialogs = (pending) => [[kTypeScreen, 'Pause…'], [kTypeScreen, 'Limits…'], [kTypeScreen, 'Edit…'], [kTypeScreen, 'Edit…', review], [kTypeScreen, 'Test call…'], ['?screen=jobs&biz_type=order.unpaid', 'All that match…'], ['?screen=jobs&biz_type=order.unpaid', 'All that match…', preview],
  [`?screen=job&id=${pending}`, 'Reschedule…'], ['?screen=dead', /^Replay mail\.remind/], ['', 'Keyboard shortcuts']];

export async function DialogsAreAccessible(stand) {
  const node = await busy(stand);
  const wrong = [], [{job_id: pending}] = (await node.call('GET', 'v1/jobs?status=pending')).data.items;
  for (const scheme of ['light', 'dark']) {
    const page = await openPage(stand, {scheme});
    await page.route('**/v1/bulk', (route) => route.fulfill({json: {matched: 1234}}));
    for (const [address, button, change] of kDialogs(pending)) {
      await visit(page, node.url + address);
      const opener = page.getByRole('button', {name: button}).first();
      await opener.click();
      await page.getByRole('dialog').waitFor();
      if (change) await change(page.getByRole('dialog'));
      for (const finding of await findings(page)) wrong.push(`${button} ${scheme}: ${finding}`);
      // Esc discards no edits.
      await (change === review ? page.getByRole('button', {name: 'Discard'}).click() : page.keyboard.press('Escape'));
      await page.getByRole('dialog').waitFor({state: 'hidden'});
      if (!(await opener.evaluate((element) => element === document.activeElement))) wrong.push(`${button}: the focus is not given back`);
    }
    wrong.push(...page.offences.splice(0));
    await page.end();
  }
  assert.deepEqual(wrong, []);
}

export async function HostileTextsAreTexts(stand) {
  const node = await busy(stand);
  const page = await openPage(stand);
  const hostile = ['<img src=x onerror="console.error(1)">', '"><script>console.error(2)</script>', 'a\u202egnp.exe', '\u2067\u200f\u061cabc', '${alert(1)}{{7*7}}', 'é'.repeat(64), "'; DROP TABLE x; --", '../../v1/types?x=1#y', '\u0001\u001b[31mred', 'a\nb\tc', ' '];
  for (const biz_id of hostile) {
    const id = await node.job('order.unpaid', biz_id, {attribute: {text: biz_id}});
    await visit(page, `${node.url}?screen=jobs&biz_id=${encodeURIComponent(biz_id)}`);
    const link = page.locator(`a[href="?screen=job&id=${id}"]`).first();
    assert.equal(await link.locator('bdi').evaluate((element) => element.textContent), biz_id);
    await link.click();
    await page.locator('#attribute').waitFor();
    assert.ok((await page.locator('#attribute').evaluate((element) => element.textContent)).length > 0);
    assert.equal(await page.locator('.keys bdi').first().evaluate((element) => element.textContent), biz_id);
    // What turns the direction of writing, or is not seen, has its number beside it.
    if (/[\u202e\u2067\u0001\n]/.test(biz_id)) assert.ok((await page.locator('.keys bdi .esc').count()) > 0);
  }
  assert.equal(await page.locator('main img, main script').count(), 0);
  await page.end();
}

export async function ErrorTextsAreTexts(stand) {
  const node = await busy(stand);
  await node.call('PUT', 'v1/types/pulled', {handler: {kind: 'pull'}, max_attempts: 1});
  const id = await node.job('pulled', 'hostile-error', {delay_ms: 0});
  const error = '<b onmouseover=alert(1)>no</b> \u202eevil ' + 'x'.repeat(200);
  const {data} = await node.call('POST', 'v1/types/pulled/lease', {max: 1, wait_ms: 5000});
  await node.call('POST', 'v1/leases/nack', {items: [{job_id: id, lease_token: data.items[0].lease_token, error}]});
  const page = await openPage(stand);
  await visit(page, `${node.url}?screen=job&id=${id}`);
  await page.locator('.timeline .failed pre').waitFor();
  assert.equal(await page.locator('.timeline .failed pre bdi').evaluate((element) => element.textContent), error);
  assert.equal(await page.locator('main b').count(), 0);
  await page.end();
}

export async function NumbersOf64BitsKeepTheirDigits(stand) {
  const node = await busy(stand);
  const body = '{"biz_type":"order.unpaid","biz_id":18446744073709551615,"delay_ms":3600000,"attribute":{"n":18446744073709551615,"m":-9223372036854775808,"d":0.1234567890123456789,"attribute":"\\"}"}}';
  const {data} = await node.call('POST', 'v1/jobs', body);
  const page = await openPage(stand);
  await visit(page, `${node.url}?screen=job&id=${data.job_id}`);
  const shown = await page.locator('#attribute').innerText();
  for (const number of ['18446744073709551615', '-9223372036854775808', '0.1234567890123456789']) assert.ok(shown.includes(number), `${number} is not in ${shown}`);
  await page.getByText('18446744073709551615', {exact: true}).first().waitFor();
  await page.end();
}

export async function KeysLeadAnywhere(stand) {
  const node = await busy(stand);
  const page = await openPage(stand);
  await visit(page, node.url);
  for (const [key, title] of [['t', 'Types'], ['j', 'Jobs'], ['d', 'Dead letters'], ['c', 'Calendar'], ['n', 'Cluster'], ['r', 'Reports'], ['o', 'Overview']]) {
    await page.keyboard.press('g');
    await page.keyboard.press(key);
    await page.getByRole('heading', {level: 1, name: title}).waitFor();
  }
  await page.keyboard.press('/');
  await eventually('the search has the focus', () => page.locator('#search').evaluate((element) => element === document.activeElement));
  await page.keyboard.type('order-7');
  await page.keyboard.press('Enter');
  await page.waitForURL(/biz_id=order-7/);
  await eventually('one job is found', async () => (await page.locator('tbody tr').count()) === 1);
  await page.locator('main h1').focus();
  await page.keyboard.press('?');
  await page.getByRole('dialog', {name: 'Keyboard'}).waitFor();
  await page.end();
}

export async function TheZoneOfTimesIsNamed(stand) {
  const node = await busy(stand);
  const page = await openPage(stand);
  await visit(page, node.url + '?screen=jobs');
  await page.getByRole('columnheader', {name: 'Deadline (UTC)'}).waitFor();
  await page.getByRole('button', {name: /Times are in UTC/}).click();
  const zone = await page.evaluate(() => Intl.DateTimeFormat().resolvedOptions().timeZone);
  await page.getByRole('columnheader', {name: `Deadline (${zone})`}).waitFor();
  await page.getByRole('button', {name: /^Colours/}).click();
  assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), 'light');
  await page.end();
}

export async function PagesGoOnWhereTheLastEnded(stand) {
  const node = await busy(stand);
  const page = await openPage(stand);
  await visit(page, node.url + '?screen=jobs&biz_type=order.unpaid');
  const first = await page.locator('tbody tr td:last-child').allInnerTexts();
  assert.equal(first.length, 50);
  await page.getByRole('link', {name: 'Next page'}).click();
  await page.waitForURL(/cursor=/);
  await eventually('another page', async () => (await page.locator('tbody tr td:last-child').first().innerText()) !== first[0]);
  const second = await page.locator('tbody tr td:last-child').allInnerTexts();
  assert.deepEqual(second.filter((id) => first.includes(id)), []);
  await page.goBack();
  await eventually('the first page again', async () => (await page.locator('tbody tr td:last-child').first().innerText()) === first[0]);
  await page.end();
}

// What the other tests rely on: a page that does what it must not is noticed.
export async function OffencesAreNoticed(stand) {
  const node = await busy(stand);
  for (const [misdeed, what] of [[() => console.error('a mistake'), /console: a mistake/], [() => setTimeout(() => { throw new Error('thrown'); }), /error: .*thrown/],
    [() => { const script = document.createElement('script'); script.textContent = '1'; document.body.append(script); }, /policy: script-src/], [() => { fetch('http://127.0.0.2:1/').catch(() => {}); }, /connect-src|elsewhere/]]) {
    const page = await openPage(stand);
    await visit(page, node.url);
    await page.evaluate(misdeed);
    await eventually('it is noticed', () => page.offences.some((text) => what.test(text)));
    await assert.rejects(page.end());
  }
}

export async function WorksBelowAPrefix(stand) {
  const node = await busy(stand);
  const proxy = await prefixProxy(node.url, '/tools/tocsin/');
  const page = await openPage(stand);
  await visit(page, proxy.url + '?screen=jobs');
  await page.locator('tbody tr').first().waitFor();
  await page.end();
  proxy.close();
}

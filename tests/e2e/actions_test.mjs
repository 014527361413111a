// Every action, and its effect in the database.
import assert from 'node:assert/strict';
import {eventually, kTokens, openPage} from './stand.mjs';
import {busy, visit} from './looks_test.mjs';

const status = (stand, id) => stand.sql(`SELECT status FROM tocsin.job WHERE job_id = ${id}`);
const openJob = async (stand, node, id) => {
  const page = await openPage(stand);
  await visit(page, `${node.url}?screen=job&id=${id}`);
  return page;
};

async function press(page, name) {
  await page.getByRole('button', {name, exact: true}).first().click();
}

export async function CancelsAJob(stand) {
  const node = await busy(stand);
  const id = await node.job('order.unpaid', 'to-cancel');
  const page = await openJob(stand, node, id);
  await press(page, 'Cancel');
  await eventually('it is cancelled', () => status(stand, id) === 'cancelled');
  await page.locator('.title .badge', {hasText: 'cancelled'}).waitFor();
  await page.locator('.toast', {hasText: 'It is cancelled.'}).waitFor();
  assert.equal(await page.getByRole('button', {name: 'Run now', exact: true}).count(), 0);
  await page.end();
}

export async function RunsAJobNow(stand) {
  const node = await busy(stand);
  const id = await node.job('order.unpaid', 'to-run');
  const page = await openJob(stand, node, id);
  await press(page, 'Run now');
  await eventually('it is done', () => status(stand, id) === 'done');
  await page.locator('.title .badge', {hasText: 'done'}).waitFor();
  await page.locator('.machine .now', {hasText: 'done'}).waitFor();
  await page.end();
}

export async function ReschedulesAJob(stand) {
  const node = await busy(stand);
  const id = await node.job('order.unpaid', 'to-reschedule');
  const page = await openJob(stand, node, id);
  await press(page, 'Reschedule…');
  await page.getByLabel(/New deadline/).fill('2039-05-06T07:08:09');
  await page.getByRole('dialog').getByRole('button', {name: 'Reschedule', exact: true}).click();
  await page.getByRole('dialog').waitFor({state: 'hidden'});
  assert.equal(stand.sql(`SELECT action_time AT TIME ZONE 'UTC' FROM tocsin.job WHERE job_id = ${id}`), '2039-05-06 07:08:09');
  await page.getByText('2039-05-06 07:08:09').first().waitFor();
  await page.end();
}

export async function RetriesADeadJob(stand) {
  const node = await busy(stand);
  const [{job_id: id}] = (await node.call('GET', 'v1/jobs?biz_type=mail.remind&status=dead')).data.items;
  await node.call('POST', 'v1/types/mail.remind/pause');
  const page = await openJob(stand, node, id);
  await press(page, 'Retry');
  await eventually('it is pending', () => status(stand, id) === 'pending');
  await page.locator('.title .badge', {hasText: 'pending'}).waitFor();
  await node.call('POST', 'v1/types/mail.remind/resume');
  await page.locator('.timeline').getByText('Retried after it had died').waitFor();
  assert.deepEqual(await page.locator('.timeline strong').allTextContents(), ['Attempt 1', 'Attempt 1']);
  await page.end();
}

/** The list of `n` new jobs of a key, some of them selected by their index: {page, ids}. */
async function selected(stand, node, key, n, chosen) {
  const ids = [];
  for (let i = 0; i < n; ++i) ids.push(await node.job('order.unpaid', key));
  const page = await openPage(stand);
  await visit(page, `${node.url}?screen=jobs&biz_id=${key}`);
  for (const i of chosen) await page.getByLabel(`Job ${ids[i]}`).check();
  await page.getByText(`${chosen.length} selected:`).waitFor();
  return {page, ids};
}

export async function RunsAndRetriesWhatIsSelected(stand) {
  const node = await busy(stand);
  const {page, ids} = await selected(stand, node, 'chosen', 2, [1]);
  await page.locator('.buttons', {hasText: '1 selected:'}).getByRole('button', {name: 'Run now'}).click();
  await eventually('it ran', () => !['pending', 'running'].includes(status(stand, ids[1])));
  assert.equal(status(stand, ids[0]), 'pending');
  const [{job_id: dead}] = (await node.call('GET', 'v1/jobs?biz_type=mail.remind&status=dead')).data.items;
  await node.call('POST', 'v1/types/mail.remind/pause');
  await visit(page, node.url + '?screen=jobs&biz_type=mail.remind&status=dead');
  await page.getByLabel(`Job ${dead}`).check();
  await page.locator('.buttons', {hasText: '1 selected:'}).getByRole('button', {name: 'Retry'}).click();
  await eventually('it is pending', () => status(stand, dead) === 'pending');
  await node.call('POST', 'v1/types/mail.remind/resume');
  await page.end();
}

export async function CancelsWhatIsSelected(stand) {
  const node = await busy(stand);
  const {page, ids} = await selected(stand, node, 'selected', 3, [0, 2]);
  await press(page, 'Cancel');
  await eventually('two are cancelled', () => status(stand, ids[0]) === 'cancelled' && status(stand, ids[2]) === 'cancelled');
  assert.equal(status(stand, ids[1]), 'pending');
  await page.locator('.toast', {hasText: '2 cancelled'}).waitFor();
  await page.end();
}

export async function PausesAndResumesAType(stand) {
  const node = await busy(stand);
  await node.call('PUT', 'v1/types/to.pause', {handler: {kind: 'noop'}});
  const paused = () => stand.sql("SELECT paused, paused_until AT TIME ZONE 'UTC' FROM tocsin.biz_type WHERE name = 'to.pause'");
  const page = await openPage(stand);
  await visit(page, node.url + '?screen=types&type=to.pause');
  await press(page, 'Pause…');
  await page.getByLabel(/^Until/).fill('2039-01-02T03:04:05');
  await page.getByLabel('Reason, for the audit log').fill('the shop moves');
  const asked = page.waitForRequest('**/v1/types/to.pause/pause');
  await page.getByRole('dialog').getByRole('button', {name: 'Pause', exact: true}).click();
  assert.equal((await asked).postDataJSON().reason, 'the shop moves');
  await page.getByText('paused until 2039-01-02 03:04:05').waitFor();
  assert.equal(paused(), 't|2039-01-02 03:04:05');
  await press(page, 'Resume');
  await eventually('it fires again', () => paused().startsWith('f|'));
  await page.getByRole('button', {name: 'Pause…'}).waitFor();
  await page.end();
}

export async function EditsATypeAfterShowingTheDifference(stand) {
  const node = await busy(stand);
  await node.call('PUT', 'v1/types/to.edit', {handler: {kind: 'noop'}, max_attempts: 3});
  const page = await openPage(stand);
  await visit(page, node.url + '?screen=types&type=to.edit');
  await press(page, 'Edit…');
  const text = page.getByLabel('Settings (JSON)');
  await text.fill((await text.inputValue()).replace('"max_attempts": 3', '"max_attempts": 7'));
  await press(page, 'Review changes');
  assert.match(await page.locator('.diff .del').innerText(), /"max_attempts": 3/);
  assert.match(await page.locator('.diff .add').innerText(), /"max_attempts": 7/);
  await press(page, 'Save these changes');
  await page.getByRole('dialog').waitFor({state: 'hidden'});
  assert.equal(stand.sql("SELECT max_attempts FROM tocsin.biz_type WHERE name = 'to.edit'"), '7');
  await page.end();
}

export async function KeepsWhatAnotherHasChangedInAType(stand) {
  const node = await busy(stand);
  const put = (attempts, rate) => node.call('PUT', 'v1/types/to.share', {handler: {kind: 'noop'}, max_attempts: attempts, rate_per_s: rate});
  const stored = () => stand.sql("SELECT max_attempts, rate_per_s FROM tocsin.biz_type WHERE name = 'to.share'");
  await put(3, 10);
  const page = await openPage(stand, {mayRefuse: true});
  await visit(page, node.url + '?screen=types&type=to.share');
  await press(page, 'Edit…');
  const text = page.getByLabel('Settings (JSON)');
  await text.fill((await text.inputValue()).replace('"max_attempts": 3', '"max_attempts": 7'));
  for (let i = 0; i < 3; ++i) await page.keyboard.press('Escape');
  assert.match(await text.inputValue(), /"max_attempts": 7/, 'Esc discards no edits');
  await put(3, 20);
  await press(page, 'Review changes');
  await press(page, 'Save these changes');
  await page.getByText('The type has been changed meanwhile by another user').waitFor();
  assert.equal(stored(), '3|20');
  assert.match(await page.locator('.diff .del', {hasText: 'rate_per_s'}).innerText(), /20/, 'the review shows what saving would undo');
  await press(page, 'Back');
  await text.fill((await text.inputValue()).replace('"rate_per_s": 10', '"rate_per_s": 20'));
  await press(page, 'Review changes');
  await press(page, 'Save these changes');
  await page.getByRole('dialog').waitFor({state: 'hidden'});
  assert.equal(stored(), '7|20');
  await press(page, 'Limits…');
  await page.getByLabel(/rate_per_s/).fill('30');
  await put(9, 20);
  await press(page, 'Set the limits');
  await page.getByRole('dialog').getByText('open it again').waitFor();
  assert.equal(stored(), '9|20');
  await page.end();
}

export async function SetsTheLimitsOfAType(stand) {
  const node = await busy(stand);
  await node.call('PUT', 'v1/types/to.limit', {handler: {kind: 'webhook', url: 'http://127.0.0.1:9/', secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'}, max_attempts: 5, rate_per_s: 3});
  const limits = () => stand.sql("SELECT max_running, rate_per_s, max_attempts, handler ->> 'secret' FROM tocsin.biz_type WHERE name = 'to.limit'");
  const secret = limits().split('|')[3];
  const page = await openPage(stand);
  await visit(page, node.url + '?screen=types&type=to.limit');
  await press(page, 'Limits…');
  await page.getByLabel(/max_running/).fill('12');
  await page.getByLabel(/rate_per_s/).fill('');
  await press(page, 'Set the limits');
  await page.getByRole('dialog').waitFor({state: 'hidden'});
  assert.equal(limits(), `12||5|${secret}`);
  await page.getByText('at most 12').waitFor();
  await page.end();
}

export async function TestsATypeWithARealJob(stand) {
  const node = await busy(stand);
  const page = await openPage(stand);
  await visit(page, node.url + '?screen=types&type=order.unpaid');
  await press(page, 'Test call…');
  await page.getByLabel('Attribute (JSON)').fill('{"n": 12345678901234567890}');
  await press(page, 'Create the job');
  await page.getByRole('link', {name: /See what became of job/}).click();
  await page.locator('.title .badge', {hasText: 'done'}).waitFor();
  assert.match(await page.locator('#attribute').innerText(), /12345678901234567890/);
  assert.equal(stand.sql("SELECT count(*) FROM tocsin.job WHERE biz_id LIKE 'test-%' AND status = 'done'"), '1');
  await page.end();
}

export async function ViewersSeeNoButtonsAndAreRefused(stand) {
  await busy(stand);
  const node = await stand.node({tokens: kTokens});
  const id = await node.job('order.unpaid', 'not-yours', {}, kTokens.producer);
  for (const [role, isAllowed] of [['viewer', false], ['admin', true]]) {
    const page = await openPage(stand, {token: kTokens[role]});
    for (const [address, buttons] of [[`?screen=job&id=${id}`, ['Cancel', 'Run now', 'Reschedule…']], ['?screen=types&type=order.unpaid', ['Pause…', 'Limits…', 'Edit…', 'Test call…']], ['?screen=jobs&biz_type=order.unpaid', ['All that match…']], ['?screen=dead', []]]) {
      await visit(page, node.url + address);
      await page.getByRole('button', {name: `Sign out ${role}-name (${role})`}).waitFor();
      for (const name of buttons) assert.equal(await page.getByRole('button', {name, exact: true}).count(), isAllowed ? 1 : 0, `${role}: ${name}`);
      assert.equal(await page.getByRole('button', {name: /^Replay/}).count() > 0, false || (isAllowed && address === '?screen=dead'));
    }
      await page.end();
  }
  assert.equal((await node.call('POST', `v1/jobs/${id}/cancel`, undefined, kTokens.viewer)).status, 403);
  assert.equal((await node.call('POST', 'v1/types/order.unpaid/pause', undefined, kTokens.producer)).status, 403);
  assert.equal(status(stand, id), 'pending');
}

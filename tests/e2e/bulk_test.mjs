// Changes to many jobs at once, from the page, with their effect in the database and in the audit log.
import assert from 'node:assert/strict';
import {eventually, kTokens, openPage} from './stand.mjs';
import {findings, visit} from './looks_test.mjs';
import {refusing} from './screens_test.mjs';

let shared;
async function bulky(stand) {
  shared = shared || await stand.node({tokens: kTokens});
  return shared;
}
const make = (node, type, n, more = {}) => node.call('POST', 'v1/jobs/batch', {jobs: Array.from({length: n}, (_, i) => ({biz_type: type, biz_id: `${type}-${i}`, delay_ms: 3_600_000, ...more}))}, kTokens.admin);
const count = (stand, type, status) => Number(stand.sql(`SELECT count(*) FROM tocsin.job WHERE biz_type = '${type}' AND status = '${status}'`));

const putNoop = (node, type) => node.call('PUT', `v1/types/${type}`, {handler: {kind: 'noop'}}, kTokens.admin);

/** The page with the dialog for all jobs of a new type, of which there are `n`. */
async function allThatMatch(stand, node, type, n, {token = kTokens.admin, status = '', ...more} = {}) {
  await putNoop(node, type);
  await make(node, type, n);
  const page = await openPage(stand, {token, ...more});
  await visit(page, `${node.url}?screen=jobs&biz_type=${type}${status && `&status=${status}`}`);
  await page.getByRole('button', {name: 'All that match…'}).click();
  return page;
}

/** The page of dead letters of a new type, of which `n` are dead; replayed they will be done. `prepare`: called before. */
async function deadLetters(stand, node, type, n, prepare = () => {}) {
  const receiver = await refusing();
  await node.call('PUT', `v1/types/${type}`, {handler: {kind: 'webhook', url: receiver.url}, max_attempts: 1}, kTokens.admin);
  await make(node, type, n, {delay_ms: 0});
  await eventually('all are dead', () => count(stand, type, 'dead') === n);
  receiver.close();
  prepare();
  await putNoop(node, type);
  const page = await openPage(stand, {token: kTokens.admin});
  await visit(page, `${node.url}?screen=dead&type=${type}`);
  return page;
}

async function startBulk(page, text) {
  await page.getByRole('button', {name: 'Preview'}).click();
  await page.getByRole('button', {name: text}).click();
  await page.getByText('Ended: done.').waitFor().catch(async (error) => { throw new Error(`${error.message}\n${await page.getByRole('dialog').innerText()}`); });
}

export async function CancelsAllThatMatch(stand) {
  const node = await bulky(stand);
  const page = await allThatMatch(stand, node, 'bulk.cancel', 70);
  await page.getByLabel('Reason, for the audit log').fill('<b>wrong</b> import');
  await page.getByRole('button', {name: 'Preview'}).click();
  await page.getByText('As a command').click();
  await page.getByText('"expected":70').waitFor();
  await startBulk(page, 'Cancel 70 jobs');
  await page.getByText('70 of 70 changed, 0 were in another state by then.').waitFor();
  assert.equal(count(stand, 'bulk.cancel', 'cancelled'), 70);
  await eventually('it is in the audit log', () => stand.sql("SELECT actor, matched FROM tocsin.audit WHERE reason = '<b>wrong</b> import' LIMIT 1") === 'admin-name|70');
  await visit(page, node.url + '?screen=cluster');
  await page.getByText('<b>wrong</b> import').first().waitFor();
  await page.end();
}

export async function SpreadsAPeak(stand) {
  const node = await bulky(stand);
  const page = await allThatMatch(stand, node, 'bulk.spread', 30, {token: kTokens.producer, status: 'pending'});
  await page.getByLabel('Action').selectOption('reschedule');
  await page.getByLabel('Due in (minutes)').fill('120');
  await page.getByLabel('Spread over (minutes)').fill('60');
  await startBulk(page, 'Reschedule 30 jobs');
  const spread = stand.sql("SELECT count(DISTINCT action_time), max(action_time) - min(action_time) > interval '50 min', min(action_time) > now() + interval '100 min' FROM tocsin.job WHERE biz_type = 'bulk.spread'");
  assert.equal(spread, '30|t|t');
  await page.end();
}

export async function NothingIsDoneWhenTheCountHasChanged(stand) {
  const node = await bulky(stand);
  const page = await allThatMatch(stand, node, 'bulk.more', 5, {mayRefuse: true});
  await page.getByRole('button', {name: 'Preview'}).click();
  await page.getByRole('button', {name: 'Cancel 5 jobs'}).waitFor();
  await node.job('bulk.more', 'one-more', {}, kTokens.admin);
  await page.getByRole('button', {name: 'Cancel 5 jobs'}).click();
  await page.getByRole('dialog').getByRole('alert').waitFor();
  assert.equal(count(stand, 'bulk.more', 'pending'), 6);
  await page.getByRole('button', {name: 'Cancel 5 jobs'}).waitFor({state: 'hidden'});
  await page.end();
}

export async function ReplaysDeadLettersAtARateAndStops(stand) {
  const node = await bulky(stand);
  const page = await deadLetters(stand, node, 'bulk.dead', 20);
  await page.getByRole('button', {name: 'Replay all of this type…'}).click();
  await page.getByLabel('At most per second').fill('1');
  await page.getByRole('button', {name: 'Preview'}).click();
  await page.getByRole('button', {name: 'Replay 20 jobs'}).click();
  await page.getByText(/[1-9]\d* of 20 changed/).waitFor();
  await page.getByRole('button', {name: 'Stop', exact: true}).click();
  await page.getByText('Ended: stopped.').waitFor();
  await page.getByText(/were left as they were/).waitFor();
  const left = count(stand, 'bulk.dead', 'dead');
  assert.ok(left > 0 && left < 20, `${left} are left`);
  await page.end();
}

export async function ReplaysTheDeadOfOneReason(stand) {
  const node = await bulky(stand);
  const forgetTwo = () => stand.sql("UPDATE tocsin.job_history SET errors = '[]' WHERE job_id IN (SELECT job_id FROM tocsin.job WHERE biz_type = 'bulk.reasons' ORDER BY job_id LIMIT 2)");
  const page = await deadLetters(stand, node, 'bulk.reasons', 6, forgetTwo);
  await page.getByRole('button', {name: 'Replay bulk.reasons:', exact: true}).click();
  await page.getByText('reason: none given').waitFor();
  await startBulk(page, 'Replay 2 jobs');
  assert.equal(count(stand, 'bulk.reasons', 'dead'), 4);
  await page.end();
}

export async function RunsAllThatMatch(stand) {
  const node = await bulky(stand);
  const page = await allThatMatch(stand, node, 'bulk.run', 5, {token: kTokens.producer});
  await page.getByLabel('Action').selectOption('run');
  await startBulk(page, 'Run now 5 jobs');
  await eventually('they have run', () => count(stand, 'bulk.run', 'done') === 5);
  await page.end();
}

export async function RetriesAllThatMatch(stand) {
  const node = await bulky(stand);
  const page = await deadLetters(stand, node, 'bulk.retry', 6);
  await visit(page, node.url + '?screen=jobs&biz_type=bulk.retry&status=dead');
  await page.getByRole('button', {name: 'All that match…'}).click();
  await startBulk(page, 'Replay 6 jobs');
  await eventually('they are done', () => count(stand, 'bulk.retry', 'done') === 6);
  await page.end();
}

export async function AboveAThousandTheCountIsTyped(stand) {
  const node = await bulky(stand);
  const page = await allThatMatch(stand, node, 'bulk.many', 1001);
  await page.getByRole('button', {name: 'Preview'}).click();
  const start = page.getByRole('button', {name: 'Cancel 1,001 jobs'});
  await start.waitFor();
  assert.ok(await start.isDisabled());
  await page.getByLabel('Type 1001 to confirm').fill('1000');
  assert.ok(await start.isDisabled());
  await page.getByLabel('Type 1001 to confirm').fill('1001');
  await start.click();
  await page.getByText('Ended: done.').waitFor();
  assert.equal(count(stand, 'bulk.many', 'cancelled'), 1001);
  await page.end();
}

export async function ABulkChangeIsWatchedAfterItsDialogIsClosed(stand) {
  const node = await bulky(stand);
  const page = await allThatMatch(stand, node, 'bulk.slow', 40);
  await page.getByLabel('At most per second').fill('1');
  await page.getByRole('button', {name: 'Preview'}).click();
  await page.getByRole('button', {name: 'Cancel 40 jobs'}).click();
  await page.getByRole('button', {name: 'Close (continues)'}).click();
  await page.getByText(/is running: \d+ of 40 changed/).waitFor();
  assert.deepEqual(await findings(page), []);
  await page.getByRole('link', {name: 'Cluster'}).click();
  await page.getByRole('button', {name: 'Show…'}).click();
  await page.getByRole('button', {name: 'Stop', exact: true}).click();
  await page.getByText('Ended: stopped.').waitFor();
  await page.getByRole('button', {name: 'Close', exact: true}).click();
  await page.getByText(/is running|has ended/).waitFor({state: 'hidden'});
  assert.ok(count(stand, 'bulk.slow', 'pending') > 0);
  await page.end();
}

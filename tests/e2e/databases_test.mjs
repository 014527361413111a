// An installation of two databases: where its shards live and move to, and what is said when one of them is down.
import assert from 'node:assert/strict';
import {spawn} from 'node:child_process';
import {eventually, openPage, tocsin} from './stand.mjs';
import {findings, visit} from './looks_test.mjs';

let shared;
/** A node with shards 0 to 3 in a, 4 to 7 in b. */
async function two(stand) {
  if (shared) return shared;
  const a = stand.server('a'), b = stand.server('b'), databases = [`a=${a}`, `b=${b}`];
  tocsin('migrate', '--shards', '8', ...databases.flatMap((url) => ['--database', url]));
  const node = await stand.node({databases});
  await node.call('PUT', 'v1/types/order.unpaid', {handler: {kind: 'noop'}});
  await node.call('POST', 'v1/jobs/batch', {jobs: Array.from({length: 40}, (_, i) => ({biz_type: 'order.unpaid', biz_id: `order-${i}`, delay_ms: 3_600_000}))});
  shared = {node, a, b, databases};
  return shared;
}
const rowOf = (page, name) => page.getByRole('region', {name: 'Databases'}).locator('tbody tr', {hasText: name});
const cellsOf = (page, name) => rowOf(page, name).locator('td').allInnerTexts();

export async function AMoveIsShownWhileItLasts(stand) {
  const {node, b, databases} = await two(stand);
  const page = await openPage(stand);
  await visit(page, node.url + '?screen=cluster');
  await page.getByText('No shard is moving.').waitFor();
  assert.deepEqual((await cellsOf(page, 'a')).slice(0, 3), ['a', '✓\nanswers', '4']);
  assert.deepEqual((await cellsOf(page, 'b')).slice(0, 3), ['b', '✓\nanswers', '4']);
  // A transaction that reads at the target holds up the last step of the move.
  const reader = spawn('psql', ['-XAtq', '-d', b, '-c', 'BEGIN; SELECT count(*) FROM tocsin.job; SELECT pg_sleep(600)'], {stdio: 'ignore'});
  await eventually('the reader is there', () => stand.sql("SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(600)' AND wait_event = 'PgSleep'", b) === '1');
  const mover = spawn(process.env.TOCSIN_BINARY, ['shard', 'move', '0', '--to', 'b', ...databases.flatMap((url) => ['--database', url])], {stdio: 'ignore'});
  const ended = new Promise((done) => { mover.on('exit', done); });
  try {
    const move = page.getByRole('region', {name: 'Moves'}).locator('tbody tr');
    await move.waitFor();
    assert.deepEqual((await move.locator('td').allInnerTexts()).slice(0, 3), ['0', 'a', 'b']);
    await page.locator('.shards .moving').waitFor();
    assert.match(await page.locator('.shards .moving').getAttribute('title'), /^Shard 0: .*, in a, .* to b$/);
    await eventually('it is counted', async () => (await cellsOf(page, 'a'))[4] === '1');
    assert.deepEqual(await findings(page), []);
  } finally {
    stand.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(600)' AND pid <> pg_backend_pid()", b);
    reader.kill();
  }
  assert.equal(await ended, 0);
  await page.getByText('No shard is moving.').waitFor();
  await eventually('b has it', async () => (await cellsOf(page, 'b'))[2] === '5');
  await page.end();
}

export async function ADatabaseOfTwoThatIsAwayIsNamed(stand) {
  const {node} = await two(stand);
  const page = await openPage(stand, {mayRefuse: true});
  stand.stopServer('b');
  try {
    await visit(page, node.url + '?screen=cluster');
    await rowOf(page, 'b').getByText('unavailable').waitFor({timeout: 40_000});
    await rowOf(page, 'a').getByText('answers').waitFor();
    await page.getByText('Incomplete, without b: this database does not answer.').waitFor();
    assert.deepEqual(await findings(page), []);
    await visit(page, node.url);
    await page.getByText('A part of the jobs cannot fire now.').waitFor();
    await page.getByText('Start the database or repair the connection to it.').first().waitFor();
    for (const screen of ['jobs', 'types', 'dead', 'calendar', 'reports']) {
      await visit(page, `${node.url}?screen=${screen}`);
      await page.getByText('Incomplete, without b').first().waitFor();
      assert.doesNotMatch(await page.locator('main').innerText(), /undefined|NaN|could not be read/, screen);
    }
  } finally {
    stand.server('b');
  }
  await visit(page, node.url + '?screen=cluster');
  await rowOf(page, 'b').getByText('answers').waitFor({timeout: 40_000});
  await page.end();
}

// Installations with more types, shards and rows than one page of a list holds.
import assert from 'node:assert/strict';
import {eventually, openPage} from './stand.mjs';
import {busy, visit} from './looks_test.mjs';

export async function TypesBeyondTheFirstPageOfAReportHaveTheirData(stand) {
  const node = await busy(stand);
  const names = Array.from({length: 101}, (_, i) => `crowd.${String(i).padStart(3, '0')}`), last = 'zz.last.by.name';
  for (const name of names) await node.call('PUT', `v1/types/${name}`, {handler: {kind: 'noop'}});
  await node.call('PUT', `v1/types/${last}`, {handler: {kind: 'pull'}, slo: {lateness_ms: 1000, share: 0.99}});
  await node.job(last, 'overdue', {delay_ms: 0});
  await node.job(last, 'overdue', {action_time: '2026-01-01T00:00:00Z', delay_ms: undefined});
  const page = await openPage(stand);
  await visit(page, node.url + '?screen=types');
  const row = page.locator('tbody tr', {hasText: last});
  await eventually('its jobs are overdue', async () => /^2\s/.test(await row.locator('td').nth(1).innerText()));
  await visit(page, `${node.url}?screen=types&type=${last}`);
  await page.locator('.verdict', {hasText: '2 overdue, the oldest for'}).waitFor();
  await page.locator('.verdict', {hasText: 'No consumer asks for its jobs'}).waitFor();
  await page.end();
  await node.call('POST', 'v1/jobs/cancel', {biz_id: 'overdue', biz_type: last});
  for (const name of [...names, last]) await node.call('DELETE', `v1/types/${name}`);
}

// A list of count() items in pages of 1,000, as the node answers them.
const inPages = (page, path, count, item, more = () => ({})) => page.route((url) => url.pathname.endsWith(path), (route) => {
  const asked = new URL(route.request().url()).searchParams, n = count(), from = Number(asked.get('cursor') || 0), end = Math.min(n, from + Number(asked.get('limit') || 100));
  return route.fulfill({json: {items: Array.from({length: end - from}, (_, i) => item(from + i)), next_cursor: end < n ? String(end) : null, ...more(from)}});
});

export async function TheMapShowsEveryShard(stand) {
  const node = await busy(stand);
  const page = await openPage(stand);
  await inPages(page, '/v1/shards', () => 1024, (shard) => ({shard, database: `db${shard % 2}`, node: 'one', scanned_age_ms: 5, pending_due_soon: 0}), (from) => (from > 0 ? {missing: ['db1']} : {}));
  await visit(page, node.url + '?screen=cluster');
  await page.getByText('1,024 of them').waitFor();
  assert.equal(await page.locator('.shards li').count(), 1024);
  await page.getByText('Incomplete, without db1: this database does not answer.').waitFor();
  await page.end();
}

export async function ManyThousandsOfTypesAreCutWithAWord(stand) {
  const node = await busy(stand);
  const template = (await node.call('GET', 'v1/types/paused.one')).data;
  let n = 2500;
  const page = await openPage(stand);
  await inPages(page, '/v1/types', () => n, (i) => ({...template, paused: false, name: `type.${String(i).padStart(5, '0')}`}));
  await visit(page, node.url + '?screen=types');
  await page.getByRole('heading', {name: 'The first 1,000 of 2,500 types', exact: true}).waitFor();
  await page.getByLabel('Find a type').fill('type.02499');
  await page.getByRole('heading', {name: '1 of 2,500 types', exact: true}).waitFor();
  assert.equal(await page.locator('tbody tr').count(), 1);
  n = 12_000;
  for (const screen of ['jobs', 'calendar', 'reports']) {
    await page.goto(`${node.url}?screen=${screen}`);
    const choice = page.locator('main select:has(option[value="type.00001"])');
    await choice.locator('option[disabled]', {hasText: 'the first 10,000 types; there are more'}).waitFor({state: 'attached'});
    assert.equal(await choice.locator('option').count(), 1 + 10_000 + 1, screen);
  }
  await page.end();
}

export async function ChartsOfManyTypesSayWhereTheyBegin(stand) {
  const node = await busy(stand);
  const page = await openPage(stand, {width: 1600});
  const kTypes = 300, hour = (i) => new Date((Math.floor(Date.now() / 3_600_000) - Math.floor(i / kTypes)) * 3_600_000).toISOString();
  await inPages(page, '/v1/reports/hour', () => 48 * kTypes, (i) => ({slot: hour(i), biz_type: `type.${i % kTypes}`, created: 1, done: 1, dead: 0, p50_ms: 1, p99_ms: 2}));
  await visit(page, node.url);
  await page.getByText('by hour, the last 39 hours: too many types for more, slowest type', {exact: true}).waitFor();
  await page.getByText('by hour, the last 39 hours: too many types for more', {exact: true}).waitFor();
  await page.getByRole('columnheader', {name: 'The last 39 hours'}).waitFor();
  await page.end();
}

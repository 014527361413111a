// What the first screen and the calendar make of the numbers that they get: each is set here, and read from the page.
import assert from 'node:assert/strict';
import {eventually, openPage} from './stand.mjs';
import {busy, findings, visit} from './looks_test.mjs';

const kNow = '2026-11-24T10:20:00Z'; // a Tuesday
const words = (text) => text.replace(/\s+/g, ' ').trim();

// Rows as the node sends them: a field that it does not have is a mistake of the test.
function rowsOf(fields, rows) {
  const blank = Object.fromEntries(fields.map((name) => [name, null]));
  for (const row of rows) assert.deepEqual(Object.keys(row).filter((name) => !fields.includes(name)), []);
  return rows.map((row) => ({...blank, ...row}));
}

// A page that gets these rows of reports: {name: rows, or a function of the query}.
async function pageWith(stand, node, reports) {
  const page = await openPage(stand);
  await page.clock.setFixedTime(kNow);
  for (const [name, rows] of Object.entries(reports)) {
    const {columns} = (await node.call('GET', `v1/reports/${name}`)).data;
    await page.route((url) => url.pathname.endsWith(`/v1/reports/${name}`), (route) => {
      const asked = new URL(route.request().url()).searchParams;
      return route.fulfill({json: {columns, items: rowsOf(columns, typeof rows === 'function' ? rows(asked) : rows), next_cursor: null}});
    });
  }
  return page;
}

const hour = (slot, done, more = {}) => ({slot: `2026-11-24T${slot}:00:00Z`, biz_type: 'order.unpaid', created: done, done, dead: 0, p50_ms: 5, p99_ms: 800, ...more});

export async function TheOverviewShowsTheNumbersThatItGets(stand) {
  const node = await busy(stand);
  const real = (await node.call('GET', 'v1/overview')).data;
  const page = await pageWith(stand, node, {
    slo: [{biz_type: 'order.unpaid', target_ms: 1000}, {biz_type: 'mail.remind', target_ms: 250}],
    hour: [hour('09', 20), hour('10', 17, {created: 40, dead: 2}), hour('10', 3, {biz_type: 'mail.remind', p50_ms: 7, p99_ms: 60})],
  });
  const worst = rowsOf(Object.keys(real.worst[0]), [
    {biz_type: 'order.unpaid', due: 2000, is_due_exact: false, retried: 31, oldest_age_ms: 95_000, waits_for: 'rate_per_s', p99_ms: 1500, target_ms: 1000, dead: 7},
    {biz_type: 'paused.one', due: 3, oldest_age_ms: 60_000, waits_for: 'paused'},
    {biz_type: 'mail.remind', due: 0, p99_ms: 20, target_ms: 250, dead: 0}]);
  const throughput = {created_per_s: 4.56, done_per_s: 12.34};
  assert.deepEqual(Object.keys(real.throughput).sort(), Object.keys(throughput).sort());
  const warnings = [{text: 'synchronous_commit is off', remedy: 'docs/operations.md, section on warnings'}, {text: 'something else', remedy: 'Do this.'}];
  await page.route('**/v1/overview', (route) => route.fulfill({json: {...real, worst, throughput, warnings, due: {...real.due, next_hour: null, next_minute: 4}, paused: [{biz_type: 'paused.one', until: null, due: 2000, is_exact: false}, {biz_type: 'to.pause', until: null, due: 1, is_exact: true}, {biz_type: 'to.wait', until: null, due: 0, is_exact: true}]}}));
  await visit(page, node.url);

  const panel = (name) => page.getByRole('region', {name, exact: true});
  const lines = async (name) => words(await panel(name).locator('.readout').innerText());
  await eventually('the target is drawn', async () => (await lines('Lateness of first starts')) === 'Tue 11-24 10:00: p50 7.0 ms, p99 800 ms, target 250 ms');
  assert.deepEqual(await panel('Lateness of first starts').locator('.legend span').allInnerTexts(), ['p50', 'p99', 'target']);
  await panel('Lateness of first starts').getByText('Table', {exact: true}).click();
  await panel('Lateness of first starts').locator('tbody tr').nth(1).waitFor();
  assert.deepEqual((await panel('Lateness of first starts').locator('tbody tr').allInnerTexts()).map(words), ['2026-11-24 09:00:00 5 800 250', '2026-11-24 10:00:00 7 800 250']);
  assert.equal(await lines('Throughput'), 'Tue 11-24 10:00: created 43 jobs, done 20 jobs, dead 2 jobs');
  const tile = page.locator('.tile', {hasText: 'Done 15 min'});
  assert.deepEqual((await tile.locator('dd').allInnerTexts()).map(words), ['12.3 /s', '4.6 /s created']);

  const nextHour = page.locator('.tile', {hasText: 'Due in the next hour'});
  assert.deepEqual((await nextHour.locator('dd').allInnerTexts()).map(words), ['–', 'not counted yet']);
  assert.deepEqual((await panel('Paused types').locator('li').allInnerTexts()).map(words), ['paused.one until it is resumed; more than 2,000 due jobs wait for it.', 'to.pause until it is resumed; 1 due job waits for it.', 'to.wait until it is resumed; no job is due yet.']);
  const types = panel('Types that need attention first').locator('tbody tr');
  assert.deepEqual((await types.allInnerTexts()).map(words), ['order.unpaid waits for its rate, 31 attempts failed 2,000+ 1 min 1.5 s target 1.0 s 7', 'paused.one paused 3 1 min – 0', 'mail.remind 0 20 ms target 250 ms 0']);
  assert.deepEqual(await types.locator('svg').evaluateAll((all) => all.map((each) => each.getAttribute('aria-label'))), ['Done by hour in two days: 37', 'Done by hour in two days: 3']);
  assert.deepEqual(await types.locator('.is-bad').allInnerTexts(), ['1.5 s']);
  assert.equal(await types.getByRole('link', {name: '7', exact: true}).getAttribute('href'), '?screen=dead&type=order.unpaid');

  assert.deepEqual((await panel('Warnings').locator('li').allInnerTexts()).map(words), ['synchronous_commit is off. Switch it on in the database: without it a crash may lose acknowledged jobs.', 'something else. Do this.']);
  assert.deepEqual(await findings(page), []);
  await page.end();
}

export async function AWarningOfTheNodeHasARemedy(stand) {
  const node = await busy(stand); // as a superuser
  const page = await openPage(stand);
  await visit(page, node.url);
  const warning = page.getByRole('region', {name: 'Warnings'}).locator('li', {hasText: 'superuser'});
  await warning.getByText('Give the node a role of its own: scripts/roles.sql makes one.').waitFor();
  await page.end();
}

const due = (width, slot, n) => ({width, slot: `2026-11-${slot}:00Z`, biz_type: 'order.unpaid', n, low: n, high: n, is_exact: true, counted_at: kNow});
const kHorizon = [due('hour', '24T11:00', 200), due('hour', '24T12:00', 400), due('minute', '24T10:30', 4), due('day', '25T00:00', 100)];

export async function TheHorizonHasTheCapacityThatWasShown(stand) {
  const node = await busy(stand);
  const page = await pageWith(stand, node, {horizon: kHorizon, hour: [hour('07', 180), hour('07', 120, {biz_type: 'mail.remind'}), hour('08', 250)]});
  await visit(page, node.url);
  const horizon = page.getByRole('region', {name: 'Horizon: what is due when'});
  const line = () => horizon.locator('svg line.limit').evaluateAll((all) => all.map((each) => Number(each.getAttribute('y1'))));
  await horizon.getByText('Shown capacity: 300 jobs done in the busiest hour of the last week.', {exact: true}).waitFor();
  assert.deepEqual(await line(), [25], 'three quarters of 400');
  await horizon.getByRole('button', {name: '2 hours'}).click();
  await horizon.getByText('Shown capacity: about 5 a minute, from the busiest hour of the last week (300).', {exact: true}).waitFor();
  assert.deepEqual(await line(), [0], 'more than is due in any minute');
  await horizon.getByRole('button', {name: '90 days'}).click();
  await horizon.getByText('Shown capacity: about 7,200 a day, from the busiest hour of the last week (300).', {exact: true}).waitFor();
  assert.deepEqual(await line(), [], 'far above what is due');
  assert.deepEqual(await findings(page), []);
  await page.end();
}

export async function TheCalendarMarksWhatIsAboveTheShownCapacity(stand) {
  const node = await busy(stand);
  const page = await pageWith(stand, node, {horizon: kHorizon, hour: (asked) => [hour('07', asked.get('type') ? 100 : 300)]});
  const over = () => page.locator('.heat a.over').evaluateAll((all) => all.map((each) => each.getAttribute('aria-label')));
  await visit(page, node.url + '?screen=calendar');
  await page.getByText('red line: above the shown capacity of 300 an hour', {exact: true}).waitFor();
  await page.getByText('red line: above the shown capacity of 7,200 a day', {exact: true}).waitFor();
  assert.deepEqual(await over(), ['2026-11-24 12:00: 400']);
  await visit(page, node.url + '?screen=calendar&type=order.unpaid');
  await page.getByText('red line: above the shown capacity of 100 an hour', {exact: true}).waitFor();
  assert.deepEqual(await over(), ['2026-11-24 11:00: 200', '2026-11-24 12:00: 400']);
  assert.deepEqual(await findings(page), []);
  await page.end();
}

export async function WithoutHistoryNoCapacityIsShown(stand) {
  const node = await busy(stand);
  const page = await pageWith(stand, node, {horizon: kHorizon, hour: []});
  await visit(page, node.url);
  const horizon = page.getByRole('region', {name: 'Horizon: what is due when'});
  await horizon.getByText('600 due; most in one hour: 400, at Tue 11-24 12:00').waitFor();
  assert.equal(await horizon.getByText('Shown capacity').count() + await horizon.locator('line.limit').count(), 0);
  await visit(page, node.url + '?screen=calendar');
  await page.getByRole('link', {name: '2026-11-24 12:00: 400'}).waitFor();
  assert.equal(await page.getByText('shown capacity').count() + await page.locator('.over').count(), 0);
  await page.end();
}

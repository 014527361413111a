// What the page shows when something else is wrong: the token, the node, the database.
import assert from 'node:assert/strict';
import {eventually, kTokens, openPage} from './stand.mjs';
import {busy, findings, findingsInBoth, isTooWide, visit} from './looks_test.mjs';

export async function AsksForATokenOnceAndKeepsItInTheTab(stand) {
  await busy(stand);
  const node = await stand.node({tokens: kTokens});
  const page = await openPage(stand, {mayRefuse: true});
  await page.goto(node.url + '?screen=jobs');
  await page.locator('input[type=password]').waitFor();
  assert.deepEqual(await findingsInBoth(page), []);
  await page.locator('input[type=password]').fill('not-the-right-token');
  await page.getByRole('button', {name: 'Use it'}).click();
  await page.getByText('The token was refused').waitFor();
  assert.deepEqual(await findingsInBoth(page), []);
  await page.locator('input[type=password]').fill(kTokens.viewer);
  await page.getByRole('button', {name: 'Use it'}).click();
  await page.locator('tbody tr').first().waitFor();
  await page.reload();
  await page.locator('tbody tr').first().waitFor();
  const kept = await page.evaluate(() => [sessionStorage.getItem('tocsin.token'), JSON.stringify(localStorage), document.cookie]);
  assert.equal(kept[0], kTokens.viewer);
  assert.ok(!kept[1].includes(kTokens.viewer));
  assert.equal(kept[2], '');
  await page.end();
}

export async function AnExpiredTokenIsAskedForAgain(stand) {
  const node = await stand.node({tokens: kTokens});
  const page = await openPage(stand, {token: kTokens.viewer, mayRefuse: true});
  await visit(page, node.url + '?screen=cluster');
  await page.getByRole('button', {name: /Sign out/}).waitFor();
  await node.kill();
  node.options.tokens = {...kTokens, viewer: 'another-viewer-token'};
  await node.start();
  await page.getByText('The token was refused').waitFor();
  assert.equal(await page.evaluate(() => sessionStorage.getItem('tocsin.token')), null);
  await page.end();
}

export async function SigningOutForgetsTheToken(stand) {
  await busy(stand);
  const node = await stand.node({tokens: kTokens});
  const page = await openPage(stand, {token: kTokens.viewer, mayRefuse: true});
  await visit(page, node.url + '?screen=jobs');
  await page.locator('tbody tr').first().waitFor();
  await page.getByRole('button', {name: 'Sign out viewer-name (viewer)'}).click();
  await page.getByRole('heading', {level: 1, name: 'Token'}).waitFor();
  assert.equal(await page.evaluate(() => sessionStorage.getItem('tocsin.token')), null);
  assert.equal(await page.locator('tbody tr').count() + await page.getByRole('button', {name: /Sign out/}).count(), 0);
  assert.deepEqual(await findingsInBoth(page), []);
  await page.end();
}

export async function ANodeThatDiesLeavesWhatWasShown(stand) {
  const node = await stand.node();
  await busy(stand);
  const page = await openPage(stand, {mayRefuse: true});
  await visit(page, node.url + '?screen=jobs');
  const rows = await page.locator('tbody tr').count();
  assert.ok(rows > 0);
  await node.kill();
  await page.getByText('Connection lost.').waitFor();
  assert.equal(await page.locator('tbody tr').count(), rows);
  assert.deepEqual(await findingsInBoth(page), []);
  await node.start();
  await page.getByText('Connection lost.').waitFor({state: 'hidden'});
  await page.end();
}

export async function HiddenTabsAskNothing(stand) {
  const node = await busy(stand);
  const page = await openPage(stand);
  await page.addInitScript(() => {
    window.isHidden = false;
    Object.defineProperty(document, 'hidden', {get: () => window.isHidden});
  });
  await page.clock.install();
  await visit(page, node.url);
  let asked = 0;
  page.on('request', (request) => { asked += request.url().includes('healthz') ? 0 : 1; });
  // Minutes pass for the page, and what it asks has time to be answered.
  const minutes = async () => {
    for (let i = 0; i < 4; ++i) {
      await page.clock.fastForward(30_000);
      await page.evaluate(async () => { await (await fetch('healthz')).text(); });
    }
  };
  await minutes();
  await eventually('it refreshes', () => asked > 0);
  // Hidden while an answer is on its way: that answer is no reason to ask again.
  let isAsked = false;
  await page.route('**/v1/overview', async (route) => {
    await page.evaluate(() => { window.isHidden = true; document.dispatchEvent(new Event('visibilitychange')); });
    isAsked = true;
    await route.continue();
  });
  await page.clock.fastForward(10_000);
  await eventually('it asks once more', () => isAsked);
  await minutes();
  asked = 0;
  await minutes();
  assert.equal(asked, 0);
  await page.evaluate(() => { window.isHidden = false; document.dispatchEvent(new Event('visibilitychange')); });
  await eventually('it refreshes again', () => asked > 0);
  await page.end();
}

export async function NeverMeansNever(stand) {
  const node = await busy(stand);
  const page = await openPage(stand);
  await page.addInitScript(() => localStorage.setItem('tocsin.refresh', '0'));
  await page.clock.install();
  await visit(page, node.url);
  let asked = 0;
  page.on('request', () => ++asked);
  await page.clock.fastForward(600_000);
  await page.evaluate(() => document.dispatchEvent(new Event('visibilitychange'))); // as when the tab is looked at again
  await page.waitForLoadState('networkidle');
  assert.equal(asked, 0);
  await page.end();
}

export async function WithoutDashboardThereIsNothingAtTheRoot(stand) {
  const node = await stand.node({more: ['--dashboard', 'off']});
  assert.equal((await node.call('GET', '')).status, 404);
  assert.equal((await node.call('GET', 'healthz')).status, 200);
}

// Last: the database is away for all nodes.
export async function ADatabaseThatIsAwayIsSaidWithTheRemedy(stand) {
  const node = await busy(stand);
  const page = await openPage(stand, {mayRefuse: true});
  await visit(page, node.url);
  await page.getByText('Pending').first().waitFor();
  stand.stopDatabase();
  try {
    await page.getByText('This node cannot do its work.').waitFor({timeout: 40_000});
    await page.getByText('Start the database or repair the connection to it.').first().waitFor();
    for (const screen of ['overview', 'types', 'types&type=order.unpaid', 'jobs', 'job&id=1', 'dead', 'calendar', 'cluster', 'reports']) {
      await visit(page, `${node.url}?screen=${screen}`);
      for (const width of [1280, 390, 1920]) {
        await page.setViewportSize({width, height: 900});
        for (const scheme of ['light', 'dark']) {
          await page.emulateMedia({colorScheme: scheme});
          assert.deepEqual(await findings(page), [], `${screen}, ${scheme}, ${width}`);
        }
        assert.equal(await isTooWide(page), false, `${screen}, ${width}`);
      }
      assert.doesNotMatch(await page.locator('main').innerText(), /undefined|NaN|pooler/);
    }
  } finally {
    stand.startDatabase();
  }
  await visit(page, node.url);
  await page.getByText('This node cannot do its work.').waitFor({state: 'hidden', timeout: 40_000});
  await page.end();
}

// The heading stays first, while its data cannot be refreshed and after.
export async function TheOrderOfAScreenOutlastsAnOutage(stand) {
  await busy(stand);
  const node = await stand.node();
  for (const screen of ['overview', 'jobs', 'cluster']) {
    const page = await openPage(stand, {mayRefuse: true});
    await visit(page, `${node.url}?screen=${screen}`);
    await page.locator('.controls select').first().selectOption('2');
    const isFirst = () => page.evaluate(() => {
      const top = document.querySelector('h1').getBoundingClientRect().top;
      return [...document.querySelectorAll('.panel, .tiles, .verdict')].every((each) => each.getBoundingClientRect().top >= top);
    });
    assert.ok(await isFirst(), screen);
    const problem = {status: 503, contentType: 'application/problem+json', body: '{"title":"Service Unavailable","status":503,"detail":"The database is not available: away"}'};
    await page.route('**/v1/**', (route) => route.fulfill(problem));
    const stale = page.getByText('Not up to date').first();
    await stale.waitFor();
    assert.ok(await isFirst(), `${screen} while reads fail`);
    await page.unrouteAll();
    await stale.waitFor({state: 'hidden'});
    assert.ok(await isFirst(), `${screen} when reads work again`);
    await page.end();
  }
}

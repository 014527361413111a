// Pictures of the page: screenshot.mjs PICTURE writes the one of the README; screenshot.mjs --all FOLDER [STATE...] writes each
// screen, empty, busy, troubled, with many types and with the database down, at three widths, light and dark.
import fs from 'node:fs';
import path from 'node:path';
import {Stand, openPage} from './stand.mjs';
import {fill, longNames} from './scene.mjs';

const kScreens = {overview: '', types: '?screen=types', type: '?screen=types&type=order.unpaid', jobs: '?screen=jobs', dead: '?screen=dead', calendar: '?screen=calendar', cluster: '?screen=cluster', reports: '?screen=reports'};
const kSizes = [[390, 'light'], [390, 'dark'], [1280, 'light'], [1280, 'dark'], [1920, 'light'], [1920, 'dark']];
const kMost = 150_000; // bytes

async function shoot(page, url, file, options = {fullPage: true}) {
  await page.goto(url);
  await page.locator('main h1').waitFor();
  await page.waitForLoadState('networkidle');
  await page.screenshot({path: file, ...options});
}

async function all(stand, node, folder, state, screens) {
  for (const [width, scheme] of kSizes) {
    const page = await openPage(stand, {width, scheme, mayRefuse: true});
    for (const [name, address] of Object.entries(screens)) await shoot(page, node.url + address, path.join(folder, `${state}-${name}-${width}-${scheme}.png`));
    await page.end();
  }
}

// A dead job, one that waits, and one that was done.
async function jobScreens(node) {
  const found = {};
  for (const status of ['dead', 'pending', 'done', 'running']) {
    const [job] = (await node.call('GET', `v1/jobs?status=${status}&limit=1`)).data.items;
    if (job) found[`job-${status}`] = `?screen=job&id=${job.job_id}`;
  }
  return found;
}

async function states(folder, wanted) {
  const options = {empty: null, busy: {}, troubled: {isTroubled: true}, many: {more: longNames(49)}};
  for (const [state, scene] of Object.entries(options)) {
    if (wanted.length > 0 && !wanted.includes(state) && !(state === 'busy' && wanted.includes('away'))) continue;
    const stand = await new Stand().start();
    try {
      const node = await stand.node();
      const receiver = scene && await fill(stand, node, scene);
      const screens = {...kScreens, ...(scene ? await jobScreens(node) : {})};
      if (state === 'empty') delete screens.type;
      if (wanted.length === 0 || wanted.includes(state)) await all(stand, node, folder, state, screens);
      if (state === 'busy' && (wanted.length === 0 || wanted.includes('away'))) {
        stand.stopDatabase();
        await all(stand, node, folder, 'away', screens);
      }
      if (receiver) receiver.close();
    } finally {
      await stand.end();
    }
  }
}

const [first, folder, ...wanted] = process.argv.slice(2);
if (first === '--all') {
  fs.mkdirSync(folder, {recursive: true});
  await states(folder, wanted);
} else {
  const stand = await new Stand().start();
  try {
    const node = await stand.node({more: ['--node-name', 'node-1']});
    const receiver = await fill(stand, node);
    const page = await openPage(stand, {width: 1280});
    await shoot(page, node.url, first, {clip: {x: 0, y: 0, width: 1280, height: 872}});
    await page.end();
    receiver.close();
  } finally {
    await stand.end();
  }
  const {size} = fs.statSync(first);
  console.log(`${first}: ${size} bytes`);
  if (size > kMost) process.exitCode = 1;
}
process.exit();

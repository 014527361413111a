// The page in a real browser: every test is a function with a capital; the output is that of GoogleTest, which scripts/run_rung.py reads.
import {Stand} from './stand.mjs';
import * as actions from './actions_test.mjs';
import * as bulk from './bulk_test.mjs';
import * as databases from './databases_test.mjs';
import * as looks from './looks_test.mjs';
import * as many from './many_test.mjs';
import * as overview from './overview_test.mjs';
import * as screens from './screens_test.mjs';
import * as trouble from './trouble_test.mjs';

const only = new RegExp(process.env.TOCSIN_BROWSER_FILTER || '');
const tests = Object.entries({...looks, ...overview, ...screens, ...actions, ...bulk, ...databases, ...many, ...trouble}).filter(([name, test]) => /^[A-Z]/.test(name) && only.test(name));
const stand = new Stand();
let failed = 0;
console.log(`[==========] Running ${tests.length} tests`);
try {
  await stand.start();
  for (const [name, test] of tests) {
    console.log(`[ RUN      ] Browser.${name}`);
    const from = Date.now();
    let verdict = '      OK';
    try {
      await test(stand);
    } catch (error) {
      verdict = ' FAILED ';
      ++failed;
      console.log(error.stack || String(error));
    }
    console.log(`[ ${verdict} ] Browser.${name} (${Date.now() - from} ms)`);
  }
} finally {
  await stand.end();
}
process.exit(failed ? 1 : 0);

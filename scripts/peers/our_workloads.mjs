// Workloads that the harness does not have, in the shape of those it has: (harness, parameters) -> result.
import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { TOCSIN } from './config.mjs';
import { now, pool } from './util.mjs';

const PAD = 'x'.repeat(140);                       // as in workloads.mjs
const DAY = 86_400_000;
const job = (run, i) => ({ run, i, due: Date.now() + DAY, pad: PAD });
const jobs = (run, n) => Array.from({ length: n }, (_, i) => job(run, i));
const url = `http://127.0.0.1:${TOCSIN.port}`;

async function rate(n, work) {
  const t = now();
  await work();
  return Math.round(n / ((now() - t) / 1000));
}

async function createInBatches(adapter, all) {
  const chunks = [];
  for (let i = 0; i < all.length; i += adapter.batch.size) chunks.push(all.slice(i, i + adapter.batch.size));
  const ids = new Array(chunks.length);
  await pool(chunks, adapter.batch.parallel, async (c, i) => { ids[i] = await adapter.createBatch(c); });
  return ids.flat();
}

/** The requests of W2 and W5 by the very client that the adapter uses. For a system that does nothing. */
export async function ceiling(h, { n = 50_000, batched = 200_000, width = 32 } = {}) {
  const { adapter } = h;
  await h.reset();
  const singles = jobs('single', n), many = jobs('batch', batched);
  await pool(singles.slice(0, 2000), width, (j) => adapter.createOne(j));
  return {
    n, batched,
    create_batch_per_s: await rate(batched, () => createInBatches(adapter, many)),
    create_single_per_s: await rate(n, () => pool(singles, width, (j) => adapter.createOne(j))),
    cancels_per_s: await rate(n, () => pool(singles, width, (j) => adapter.cancel(String(j.i)))),
  };
}

/** Runs wrk with one of the modes of wrk.lua; what that prints at its end. */
function wrk(mode, seconds, { threads, connections }, ...more) {
  const args = [`-t${threads}`, `-c${connections}`, `-d${seconds}s`, '-s', 'wrk.lua', url,
    '--', mode, threads, Date.now(), ...more].map(String);
  const p = spawn('wrk', args, { stdio: ['ignore', 'pipe', 'inherit'] });
  let text = '', over = 0;
  p.stdout.on('data', (d) => {
    text += d;
    // wrk itself would wait for the end of its time, though nothing is left to do.
    if (!over && text.split('used up\n').length > threads) { over = 1; p.kill('SIGINT'); }
  });
  return new Promise((ok, no) => {
    p.on('error', no).on('close', (code) => {
      const line = text.split('\n').findLast((l) => l.startsWith('{'));
      if (!line) return no(new Error(`wrk ${mode} ended with ${code}: ${text.slice(0, 200)}`));
      const said = JSON.parse(line);
      const errors = said.connect + said.read + said.write + said.status + said.timeout;
      return errors ? no(new Error(`wrk ${mode}: ${line}`)) : ok(said);
    });
  });
}

async function count(status) {
  const { items } = await (await fetch(`${url}/v1/stats`)).json();
  return items.reduce((sum, item) => sum + (item[status] ?? 0), 0);
}

// What was in flight when wrk ended may have happened or not.
function mustBe(what, found, least, most) {
  if (found < least || found > most) throw new Error(`${what}: ${found}, not between ${least} and ${most}`);
}

/** Single creates by wrk, and what wrk can do at most. */
export async function w2wrk(h, { seconds = 10, threads = 2, connections = 32 } = {}) {
  const load = { threads, connections };
  await h.reset();
  const healthz = await wrk('healthz', Math.min(seconds, 5), load);
  const said = await wrk('create', seconds, load);
  const created = await count('pending');
  mustBe('jobs created', created, said.requests - threads, said.requests + connections);
  return {
    n: created, create_single_per_s: Math.round(said.requests / said.seconds), p50_ms: said.p50_ms, p99_ms: said.p99_ms,
    healthz_per_s: Math.round(healthz.requests / healthz.seconds),
  };
}

/** Cancels by wrk, every id once. */
export async function w5wrk(h, { n = 200_000, seconds = 60, threads = 2, connections = 32 } = {}) {
  const { adapter } = h;
  await h.reset();
  const all = jobs('w5', n);
  let ids;
  const batchRate = await rate(n, async () => { ids = await createInBatches(adapter, all); });
  await adapter.settle();                          // as after every bulk load of the harness
  writeFileSync('ids', ids.join('\n') + '\n');
  const said = await wrk('cancel', seconds, { threads, connections }, 'ids');
  const cancelled = await count('cancelled');
  mustBe('jobs cancelled', cancelled, said.sent - connections, said.sent);
  mustBe('jobs left', await count('pending'), n - cancelled, n - cancelled);
  return {
    n, cancels_per_s: Math.round(said.rate), cancelled, p50_ms: said.p50_ms, p99_ms: said.p99_ms,
    preload_per_s: batchRate,
  };
}

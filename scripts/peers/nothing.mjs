#!/usr/bin/env node
// Stands in for `tocsin serve`: the same answers at once and nothing behind them. What the harness's client reaches
// here is the most that it could show of any server.
import http from 'node:http';

const [host, port] = process.argv[process.argv.indexOf('--listen') + 1].split(':');
const BATCH = 500;                                 // what the adapter sends at once

// As large as a job with 200 bytes of attribute.
const job = {
  job_id: '1152921504606846977', biz_id: 'single-00000', biz_type: 'bench', status: 'pending',
  action_time: '2026-03-01T12:00:00.250Z', fire_at: '2026-03-01T12:00:00.250Z', attempts: 0, max_attempts: 3,
  attribute: { run: 'single', i: 12345, due: 1772366400250, pad: 'x'.repeat(140) }, idempotency_key: null, shard: 17,
  node: null, gmt_create: '2026-02-28T12:00:00.250Z', gmt_modified: '2026-02-28T12:00:00.250Z', started_at: null,
  finished_at: null, lateness_ms: null, errors: [],
};
const bytes = (json) => Buffer.from(JSON.stringify(json));
const single = bytes(job), cancelled = bytes({ result: 'cancelled', job: { ...job, status: 'cancelled' } });
const fine = bytes({ status: 'ok' });
const batch = bytes({ items: Array.from({ length: BATCH }, () => ({ job_id: job.job_id, created: true })) });

function answer(req) {
  if (req.method !== 'POST') return [200, fine];
  if (req.url === '/v1/jobs') return [201, single];
  if (req.url === '/v1/jobs/batch') return [201, batch];
  return [200, cancelled];
}

const server = http.createServer((req, res) => {
  const [status, body] = answer(req);
  const headers = { 'content-type': 'application/json', 'content-length': body.length };
  req.resume().on('end', () => res.writeHead(status, headers).end(body));
});
server.listen(+port, host);
process.on('SIGTERM', () => process.exit(0));

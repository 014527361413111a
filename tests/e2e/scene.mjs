// Made-up installations to look at: what a business might have. Reports of the past are written by SQL; the jobs are real.
import http from 'node:http';
import {eventually} from './stand.mjs';

// Name, jobs an hour by day, settings.
const kTypes = [
  ['order.unpaid', 5200, {max_attempts: 8, slo: {lateness_ms: 1000, share: 0.999}}],
  ['cart.abandoned', 3900, {rate_per_s: 200, slo: {lateness_ms: 60_000, share: 0.99}}],
  ['courier.late', 2100, {max_attempts: 3, slo: {lateness_ms: 500, share: 0.999}}],
  ['payment.capture-expires', 1500, {slo: {lateness_ms: 5000, share: 0.9999}}],
  ['ticket.escalate', 640, {handler: {kind: 'pull'}, ttr_ms: 600_000, max_running: 40, slo: {lateness_ms: 10_000, share: 0.99}}],
  ['appointment.reminder', 480, {slo: {lateness_ms: 30_000, share: 0.99}}],
  ['subscription.renewal', 310, {max_running: 50}],
  ['invoice.dunning', 120, {max_attempts: 1}],
  ['trial.ends', 75, {}],
  ['coupon.expires', 40, {handler: {kind: 'noop'}}],
  ['shipment.lost', 12, {max_attempts: 1}],
];
const kWords = ['settlement', 'reconciliation', 'verification', 'onboarding', 'replenishment', 'authorisation', 'warehouse', 'customer', 'partner', 'marketplace'];

/** Names of `n` further types, some of them long. */
export const longNames = (n) => Array.from({length: n}, (_, i) => `${kWords[i % 10]}.${kWords[(i * 3 + 1) % 10]}.${i % 4 ? `step-${i}` : `of.the.second.reminder.before.${kWords[(i * 7 + 2) % 10]}.number-${i}`}`);

// Slots of the last 30 days by day, 8 days by hour and a day by quarters, with their histograms.
// It is eleven o'clock, whenever the picture is taken.
const past = (weights) => `
  CREATE FUNCTION pg_temp.bucket(us double precision) RETURNS bigint LANGUAGE sql AS $$
    SELECT ((floor(log(2, greatest(us, 16)::numeric))::bigint - 3) << 4) | (floor(us / 2 ^ (floor(log(2, greatest(us, 16)::numeric)) - 4))::bigint & 15) $$;
  CREATE TEMP TABLE made AS
  SELECT g.grain, t.type_id, s.slot, greatest(1, round(w.an_hour * g.hours * (0.9 + 0.2 * (abs(hashtext(w.name || s.slot)) % 100) / 100.0) *
           CASE WHEN g.grain = 3 THEN 0.6 ELSE 0.25 + greatest(0, sin(pi() * (mod((date_part('epoch', s.slot - now()) / 3600 + 24000 + 11)::numeric, 24) - 5) / 17)) END *
           CASE WHEN g.grain > 1 AND s.slot + g.width > now() THEN date_part('epoch', now() - s.slot) / date_part('epoch', g.width) ELSE 1 END))::bigint AS n,
         1100 + abs(hashtext(w.name)) % 700 + abs(hashtext(s.slot::text)) % 300 AS us, coalesce((t.slo ->> 'share')::float, 1) AS share
  FROM (VALUES ${Object.entries(weights).map(([name, n]) => `('${name}', ${n}::float)`).join(', ')}) w (name, an_hour)
  JOIN tocsin.biz_type t USING (name)
  CROSS JOIN (VALUES (1, interval '15 min', interval '26 h', 0.25), (2, interval '1 h', interval '8 days', 1), (3, interval '1 day', interval '30 days', 24)) g (grain, width, back, hours)
  CROSS JOIN LATERAL generate_series(date_bin(g.width, now() - g.back, '2020-01-01Z'), now(), g.width) s (slot);
  INSERT INTO tocsin.report_slot (grain, type_id, slot, created, done, cancelled, dead, attempts, retried, started, missed, p50_ms, p90_ms, p99_ms, max_ms)
  SELECT grain, type_id, slot, round(n * 1.42), n, round(n * 0.4), n / 9000, round(n * 1.01), n / 100, n, floor(n * (1 - share) * 0.3), us / 1000.0, us / 600.0, us / 300.0, us / 90.0 FROM made
  ON CONFLICT DO NOTHING;
  INSERT INTO tocsin.report_histogram (kind, grain, slot, type_id, buckets)
  SELECT 0, grain, slot, type_id, ARRAY[(pg_temp.bucket(us) << 44) + ceil(n * 0.7)::bigint, (pg_temp.bucket(us * 1.8) << 44) + ceil(n * 0.27)::bigint, (pg_temp.bucket(us * 3.4) << 44) + ceil(n * 0.03)::bigint] FROM made
  ON CONFLICT DO NOTHING;
  INSERT INTO tocsin.job_count_delta (type_id, status, n) SELECT type_id, 2, sum(n) FROM made WHERE grain = 3 GROUP BY 1;
  INSERT INTO tocsin.job_count_delta (type_id, status, n) SELECT type_id, 3, round(sum(n) * 0.4) FROM made WHERE grain = 3 GROUP BY 1`;

// When a job of a made-up business is due, from now: most within the hours of the next days, some far off. It is eleven o'clock.
function aheadOf(i) {
  const part = (i * 0.61803398875) % 1, hour = 3_600_000, other = (i * 0.569840291) % 1;
  if (i % 20 > 16) return 300_000 + part * 85 * 24 * hour;
  const clock = 5 + 17 * (Math.acos(1 - 2 * other) / Math.PI), ahead = Math.floor(part * 7) * 24 + clock - 11;
  return 150_000 + (ahead < 0 ? ahead + 7 * 24 : ahead) * hour;
}

async function receiver(statusOf) {
  const server = http.createServer((request, response) => {
    let text = '';
    request.on('data', (data) => { text += data; }).on('end', () => setTimeout(() => response.writeHead(statusOf(text)).end(), 20));
  });
  await new Promise((done) => { server.listen(0, '127.0.0.1', done); });
  return {url: `http://127.0.0.1:${server.address().port}/timeouts`, close: () => server.close()};
}

/**
 * Fills the database of a node. more: names of further types; jobs: so many are pending; isTroubled: one endpoint is down,
 * one type is paused, one has no consumers.
 */
export async function fill(stand, node, {more = [], jobs = 20_000, isTroubled = false} = {}) {
  const fine = await receiver((text) => (text.includes('invoice.dunning') ? 422 : text.includes('shipment.lost') ? 410 : 204));
  const closed = await receiver(() => 204);
  closed.close();
  const weights = {};
  for (const [name, an_hour, settings] of [...kTypes, ...more.map((each, i) => [each, 30 + 17 * (i % 13), i % 3 ? {} : {slo: {lateness_ms: 2000, share: 0.99}}])]) {
    const url = isTroubled && name === 'courier.late' ? closed.url : fine.url;
    const {status, text} = await node.call('PUT', `v1/types/${name}`, {handler: {kind: 'webhook', url}, ...settings});
    if (status !== 201) throw new Error(text);
    weights[name] = an_hour;
  }
  stand.sql(past(weights));
  const names = Object.keys(weights), sum = Object.values(weights).reduce((a, b) => a + b);
  const typeAt = (share) => { let rest = share * sum; return names.find((name) => (rest -= weights[name]) <= 0) || names[0]; };
  for (let from = 0; from < jobs; from += 4000)
    await node.call('POST', 'v1/jobs/batch', {jobs: Array.from({length: 4000}, (_, i) => {
      const biz_type = typeAt(((from + i) * 0.7548776662) % 1);
      return {biz_type, biz_id: `${biz_type.split('.')[0]}-${48_000 + from + i}`, delay_ms: Math.round(aheadOf(from + i)), attribute: {customer: `c-${(from + i) % 977}`, total: ((from + i) % 400) + 0.99}};
    })});
  const now = (type, n) => node.call('POST', 'v1/jobs/batch', {jobs: Array.from({length: n}, (_, i) => ({biz_type: type, biz_id: `${type.split('.')[0]}-${31_000 + i}`, delay_ms: 0, attribute: {invoice: `I-2026-${1000 + i}`}}))});
  await now('invoice.dunning', 7);
  await now('shipment.lost', 2);
  if (!isTroubled) {
    await now('ticket.escalate', 14);
    let leased = 0;
    await eventually('they are leased', async () => { leased += (await node.call('POST', 'v1/types/ticket.escalate/lease', {max: 14, wait_ms: 500})).data.items.length; return leased >= 14; });
  } else {
    await node.call('POST', 'v1/types/coupon.expires/pause', {until: new Date(Date.now() + 9 * 3_600_000).toISOString()});
    await now('coupon.expires', 320);
    await now('ticket.escalate', 2600);
    await now('courier.late', 500);
  }
  await now('order.unpaid', 40);
  await eventually('the bad ones are dead', async () => (await node.call('GET', 'v1/stats')).data.totals.dead >= 9);
  const counted = async () => new Set((await node.call('GET', 'v1/reports/horizon?width=hour&limit=1000')).data.items.map((row) => row.biz_type)).size;
  await eventually('most types are counted', async () => (await counted()) >= Math.min(9, names.length), {times: 1500});
  // What was created for this picture was not created in a moment.
  stand.sql('UPDATE tocsin.report_slot SET created = round(done * 1.42)');
  return fine;
}

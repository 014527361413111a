#include "postgres/queries.h"

#include <cstdio>
#include <vector>

#include "postgres/sql_parts.h"
#include "postgres/text.h"

namespace tocsin::sql {
namespace {

const std::string kIsDue = "j.attempts < j.max_attempts AND j.fire_at <= clock_timestamp()";

const std::string kDueKeys =
    side_by_side({{"$1::smallint[]", "shard"}, {"$2::bigint[]", "job_id"}, {"$4::integer[]", "type_id"}});

std::string is_named(const std::string& keys) {
  return "j.shard = " + keys + ".shard AND j.job_id = " + keys + ".job_id AND j.type_id + 0 = " + keys +
         ".type_id AND " + kIsDue;
}

std::string lock_due(const std::string& table) {
  return "SELECT j.shard, j.job_id FROM " + table +
         " j WHERE j.shard + 0 = $1::integer AND j.type_id = $2::integer AND j.fire_at >= $3::timestamptz AND "
         "j.fire_at "
         "<= least($4::timestamptz, statement_timestamp()) AND j.attempts < j.max_attempts ORDER BY j.fire_at, "
         "j.job_id + 0 LIMIT $5::integer FOR UPDATE OF j SKIP LOCKED";
}

std::string claim_locked(const std::string& table, const std::string& lock, const std::string& ttr_us,
                         const std::string& seed, const std::string& node, const std::string& commit) {
  return "WITH s AS MATERIALIZED (SELECT set_config('synchronous_commit', " + commit +
         "::text, true) <> '' AS is_set), c AS MATERIALIZED (" + lock + "), u AS (UPDATE " + table +
         " j SET status = 1, attempts = j.attempts + 1, claim_token = hashint8extended(j.job_id, " + seed +
         "::bigint), node = " + node + ", fire_at = clock_timestamp() + " + ttr_us +
         " * interval '1 microsecond', started_at = coalesce(j.started_at, clock_timestamp()),"
         " gmt_modified = clock_timestamp(), errors = CASE WHEN j.claim_token IS NULL THEN j.errors ELSE"
         " tocsin.append_error(j.errors, clock_timestamp(), j.node, j.attempts, 'the lease ended before the attempt "
         "did') END"
         " FROM c WHERE j.shard = c.shard AND j.job_id = c.job_id RETURNING j.*, c.was, c.due), n AS (INSERT INTO "
         "tocsin.job_count_delta (type_id, status, n, event) SELECT type_id, 0, -count(*), NULL FROM u WHERE was = 0 "
         // A row that was running stays so, but starts another attempt.
         "GROUP BY 1 UNION ALL SELECT type_id, CASE was WHEN 0 THEN 1 END, count(*), " +
         code(ReportEvent::attempt) + " FROM u GROUP BY 1, was) SELECT " + kLiveColumns +
         ", j.claim_token, j.due FROM u j WHERE (SELECT is_set FROM s)";
}

// `rows`: common table expressions, the last of which, d, deletes the live rows and answers them.
std::string fire_rows(const std::string& rows, const std::string& node) {
  // A row that was running had its lease end: its count moves from running, not from pending.
  return "WITH " + rows + ", h AS (INSERT INTO tocsin.job_history_done " + kHistoryInto + " " +
         history_select("2", "coalesce(d.started_at, clock_timestamp())", "d.attempts + 1", node,
                        "CASE WHEN d.claim_token IS NULL THEN d.errors ELSE tocsin.append_error(d.errors, "
                        "clock_timestamp(), d.node, d.attempts, 'the lease ended before the attempt did') END") +
         " RETURNING job_id, type_id, coalesce(late_from, greatest(action_time, gmt_create)) AS due_at, started_at), n "
         "AS (" +
         count_move("d", "d.status", count_end("d", "2", ReportEvent::fired)) + ") SELECT * FROM h";
}

std::string fire_locked(const std::string& table, const std::string& lock, const std::string& node) {
  return fire_rows("c AS MATERIALIZED (" + lock + "), d AS (DELETE FROM " + table +
                       " j USING c WHERE j.shard = c.shard AND j.job_id = c.job_id RETURNING j.*)",
                   node);
}

// Rows of both homes by id, with the columns of a job.
std::string both(const std::string& keys, const std::string& live_on, const std::string& history_on,
                 const std::string& extra = "") {
  return "SELECT " + std::string(kLiveColumns) + extra + " FROM " + keys + " JOIN tocsin.job_live j ON " + live_on +
         " UNION ALL SELECT " + kHistoryColumns + extra + " FROM " + keys + " JOIN tocsin.job_history j ON " +
         history_on;
}

}  // namespace

std::string live_table(int table) {
  char name[32];
  std::snprintf(name, sizeof name, "tocsin.job_live_%04d", table);
  return name;
}

std::string has_live_jobs(const std::string& type_id) {
  return "EXISTS (SELECT FROM generate_series(0, tocsin.shard_count() - 1) s CROSS JOIN LATERAL (SELECT FROM "
         "tocsin.job_live j WHERE j.shard = s::smallint AND j.shard + 0 = s AND j.type_id = " +
         type_id +
         " LIMIT 1) x) OR EXISTS (SELECT FROM tocsin.outbox o WHERE o.settled_at IS NULL AND o.type_id = " + type_id +
         ")";
}

std::string claim(const std::string& table) {
  return claim_locked(
      table,
      "SELECT j.shard, j.job_id, j.status AS was, j.fire_at AS due, k.ttr_us FROM unnest($1::smallint[], $2::bigint[], "
      "$3::bigint[], $7::integer[]) k (shard, job_id, ttr_us, type_id) JOIN " +
          table + " j ON j.shard = k.shard AND j.job_id = k.job_id WHERE j.type_id + 0 = k.type_id AND " + kIsDue +
          " FOR UPDATE OF j SKIP LOCKED",
      "c.ttr_us", "$4", "$5::text", "$6");
}

std::string claim_due(const std::string& table) {
  std::string lock = lock_due(table);
  lock.insert(std::string("SELECT j.shard, j.job_id").size(), ", j.status AS was, j.fire_at AS due");
  return claim_locked(table, lock, "$6::bigint", "$7", "$8::text", "$9");
}

std::string claimed_with(const std::string& table) {
  return "SELECT " + std::string(kLiveColumns) +
         ", j.claim_token FROM (SELECT DISTINCT * FROM unnest($1::smallint[], $2::bigint[])) k (shard, job_id) JOIN " +
         table +
         " j ON j.shard = k.shard AND j.job_id = k.job_id WHERE j.status = 1 AND j.claim_token = "
         "hashint8extended(j.job_id, $3::bigint)";
}

std::string claimed_with_lane(const std::string& table) {
  return "SELECT " + std::string(kLiveColumns) + ", j.claim_token FROM " + table +
         " j WHERE j.shard + 0 = $1::integer AND j.type_id = $2::integer AND j.fire_at > statement_timestamp() AND "
         "j.status = 1 AND j.claim_token = hashint8extended(j.job_id, $3::bigint)";
}

std::string fire(const std::string& table) {
  return fire_rows(
      "s AS MATERIALIZED (SELECT set_config('lock_timeout', '20ms', true)), c AS MATERIALIZED (SELECT k.* FROM s, " +
          kDueKeys + "), d AS (DELETE FROM " + table + " j USING c WHERE " + is_named("c") + " RETURNING j.*)",
      "$3::text");
}

std::string fire_skipping(const std::string& table) {
  return fire_locked(table,
                     "SELECT j.shard, j.job_id FROM " + kDueKeys + " JOIN " + table + " j ON " + is_named("k") +
                         " FOR UPDATE OF j SKIP LOCKED",
                     "$3::text");
}

std::string fire_due(const std::string& table) { return fire_locked(table, lock_due(table), "$6::text"); }

namespace {

const std::string kLeaseHolds = " AND j.fire_at > clock_timestamp()";

std::string finish_where(const std::string& table, const std::string& guard, const std::string& lock) {
  // kind: 2 done, 4 dead, 0 retry, 1 give back.
  return "WITH c AS MATERIALIZED (SELECT k.*, j.type_id FROM unnest($1::smallint[], $2::bigint[], $3::bigint[], "
         "$4::smallint[], $5::bigint[],"
         " $6::text[]) WITH ORDINALITY k (shard, job_id, token, kind, delay_us, message, ord) JOIN " +
         table + " j ON j.shard = k.shard AND j.job_id = k.job_id WHERE j.status = 1 AND j.claim_token = k.token" +
         guard + " FOR UPDATE OF j" + lock +
         "),"
         " d AS (DELETE FROM " +
         table +
         " j USING c WHERE c.kind IN (2, 4) AND j.shard = c.shard AND j.job_id = c.job_id"
         " RETURNING j.*, c.kind, c.message, c.ord), h AS (INSERT INTO tocsin.job_history " +
         kHistoryInto + " " +
         history_select("d.kind", "d.started_at", "d.attempts", "d.node",
                        "CASE d.kind WHEN 4 THEN tocsin.append_error(d.errors, clock_timestamp(), $7::text, "
                        "d.attempts, d.message) ELSE d.errors END") +
         "), u AS (UPDATE " + table +
         " j SET status = 0, claim_token = NULL, attempts = j.attempts - c.kind, fire_at = clock_timestamp() +"
         " c.delay_us * interval '1 microsecond', gmt_modified = clock_timestamp(),"
         " started_at = CASE WHEN c.kind = 1 AND (j.attempts = 1 OR j.started_at >= j.gmt_modified) THEN NULL ELSE "
         "j.started_at END,"
         " errors = CASE c.kind WHEN 0 THEN tocsin.append_error(j.errors, clock_timestamp(), $7::text, j.attempts, "
         "c.message) ELSE j.errors END"
         " FROM c WHERE c.kind IN (0, 1) AND j.shard = c.shard AND j.job_id = c.job_id RETURNING j.type_id, c.ord, "
         "c.kind),"
         // Counted from the rows that moved, not from c: a request given twice moves its row once.
         " n AS (" +
         kCountInto +
         "SELECT b.type_id, 1, -count(*), NULL::integer, NULL::smallint, NULL::bigint, NULL::text FROM (SELECT type_id "
         "FROM d UNION ALL SELECT type_id FROM u) b GROUP BY 1 UNION ALL SELECT d.type_id, d.kind, count(*), "
         "tocsin.day_of(d.gmt_create) * 64, d.kind, max(d.job_id) FILTER (WHERE d.kind = 4), CASE d.kind WHEN 4 THEN "
         "tocsin.death_reason(d.message) END FROM d GROUP BY 1, 2, 4, 7 UNION ALL SELECT type_id, 0, count(*), NULL, "
         "CASE kind WHEN 0 THEN " +
         code(ReportEvent::retried) + " ELSE " + code(ReportEvent::given_back) +
         " END, NULL, NULL FROM u GROUP BY type_id, kind)"
         // Nor is a row answered for that a moving shard keeps still.
         " SELECT ord FROM d UNION ALL SELECT ord FROM u";
}

std::string of_leases(const std::string& columns) {
  return "SELECT " + columns +
         " FROM unnest($1::smallint[], $2::bigint[], $3::bigint[]) WITH ORDINALITY k (shard, job_id, token, ord)"
         " JOIN tocsin.job_live j ON j.shard = k.shard AND j.job_id = k.job_id WHERE j.status = 1 AND j.claim_token ="
         " k.token" +
         kLeaseHolds;
}

}  // namespace

std::string finish(const std::string& table) { return finish_where(table, "", " SKIP LOCKED"); }

std::string finish_leased(bool wait) { return finish_where(kLive, kLeaseHolds, wait ? "" : " SKIP LOCKED"); }

std::string leased() { return of_leases("k.ord, j.type_id, j.attempts, j.max_attempts"); }

std::string leases_left() {
  // Of a shard that does not live here any more, or not yet, nothing can be told.
  return "SELECT k.ord, coalesce(ceil(extract(epoch FROM j.fire_at - clock_timestamp()) * 1000000), 0)::bigint FROM "
         "unnest($1::smallint[], $2::bigint[], $3::bigint[]) WITH ORDINALITY k (shard, job_id, token, ord) LEFT JOIN "
         "LATERAL (SELECT j.fire_at FROM tocsin.job_live j WHERE j.shard = k.shard AND j.job_id = k.job_id AND "
         "j.status = 1 AND j.claim_token = k.token" +
         kLeaseHolds + ") j ON true WHERE j.fire_at IS NOT NULL OR NOT tocsin.lives_here(k.shard)";
}

std::string extend(bool wait) {
  return "WITH c AS MATERIALIZED (" + of_leases("k.ord, j.shard, j.job_id, j.type_id") + " FOR UPDATE OF j" +
         (wait ? "" : " SKIP LOCKED") +
         "), u AS (UPDATE tocsin.job_live j SET fire_at = clock_timestamp() + "
         "$4::bigint * interval"
         " '1 microsecond', gmt_modified = clock_timestamp() FROM c WHERE j.shard = c.shard AND j.job_id = c.job_id)"
         " SELECT ord, type_id FROM c";
}

std::string call_function(const std::string& table) {
  // r is materialized: as a plain join the planner may put the function inside, and call it once per row of c.
  return "WITH c AS MATERIALIZED (SELECT k.ord, j.* FROM unnest($1::smallint[], $2::bigint[], $3::bigint[]) WITH "
         "ORDINALITY k (shard, job_id, token, ord) JOIN " +
         table +
         " j ON j.shard = k.shard AND j.job_id = k.job_id WHERE j.status = 1 AND j.claim_token = k.token FOR UPDATE OF"
         " j SKIP LOCKED), a AS MATERIALIZED (SELECT array_agg(ROW(c.job_id, c.biz_id, t.name, 'running',"
         " c.action_time, c.fire_at, c.attempts, c.max_attempts, c.attribute, c.idempotency_key, c.shard, c.node,"
         " c.gmt_create, c.gmt_modified, c.started_at, NULL, round((extract(epoch FROM greatest(c.started_at -"
         " coalesce(c.late_from, greatest(c.action_time, c.gmt_create)), interval '0')) * 1000)::numeric, 3), "
         "coalesce(c.errors, '[]'))::tocsin.job ORDER BY c.ord) AS jobs FROM c JOIN"
         " tocsin.biz_type t ON t.type_id = c.type_id), r AS MATERIALIZED (SELECT r.job_id, r.answer FROM a CROSS JOIN"
         " LATERAL pg_temp.tocsin_call($4::text, $5::text, a.jobs) r)"
         " SELECT c.ord, r.answer FROM r JOIN c ON c.job_id = r.job_id";
}

std::string still_claimed() {
  return "SELECT k.ord FROM unnest($1::smallint[], $2::bigint[], $3::bigint[]) WITH ORDINALITY k (shard, job_id, "
         "token, ord)"
         " JOIN tocsin.job_live j ON j.shard = k.shard AND j.job_id = k.job_id WHERE j.status = 1 AND j.claim_token = "
         "k.token";
}

std::string bury() {
  return "WITH c AS MATERIALIZED (SELECT j.shard, j.job_id FROM unnest($1::smallint[], $2::bigint[]) k (shard, job_id) "
         "JOIN tocsin.job_live j"
         " ON j.shard = k.shard AND j.job_id = k.job_id WHERE j.status = 1 AND j.attempts >= j.max_attempts AND "
         "j.fire_at <= clock_timestamp()"
         " FOR UPDATE OF j SKIP LOCKED), d AS (DELETE FROM tocsin.job_live j USING c WHERE j.shard = c.shard AND "
         "j.job_id = c.job_id RETURNING j.*),"
         " h AS (INSERT INTO tocsin.job_history_dead " +
         kHistoryInto + " " +
         history_select("4", "d.started_at", "d.attempts", "d.node",
                        "tocsin.append_error(d.errors, clock_timestamp(), d.node, d.attempts, 'the lease ended before "
                        "the last attempt did')") +
         "), n AS (" +
         count_move("d", "1", count_end("d", "4", ReportEvent::dead, "'the lease ended before the last attempt did'")) +
         ") SELECT count(*) FROM d";
}

std::string drop_late(const std::string& table) {
  return "WITH c AS MATERIALIZED (SELECT j.shard, j.job_id FROM " + table +
         " j WHERE j.shard + 0 = $1::integer AND j.type_id = $2::integer AND j.fire_at < $3::timestamptz "
         // By the database's clock and the registry, whatever the node believes; null: nothing is too late.
         "AND j.fire_at < statement_timestamp() - (SELECT (t.catch_up ->> 'drop_older_than_ms')::bigint * interval "
         "'1 millisecond' FROM tocsin.biz_type t WHERE t.type_id = $2::integer) ORDER BY j.fire_at, j.job_id + 0 LIMIT "
         "$4::integer FOR UPDATE OF j SKIP LOCKED),"
         " d AS (DELETE FROM " +
         table +
         " j USING c WHERE j.shard = c.shard AND j.job_id = c.job_id RETURNING j.*), h AS (INSERT INTO "
         "tocsin.job_history_dead " +
         kHistoryInto + " " +
         history_select("4", "d.started_at", "d.attempts", "d.node",
                        "tocsin.append_error(d.errors, clock_timestamp(), $5::text, d.attempts, 'too late')") +
         "), n AS (" + count_move("d", "d.status", count_end("d", "4", ReportEvent::dropped_late, "'too late'")) +
         ") SELECT count(*) FROM d";
}

namespace {

// One clock reading for the whole call, after the transaction has its id: rows never land below the xmin watermark of a
// scan, however long the insert waits for a key or a table.
const std::string kInsertNow =
    "WITH t AS MATERIALIZED (SELECT CASE WHEN pg_current_xact_id() IS NOT NULL THEN clock_timestamp() END AS now";
const std::string kInsertSelect =
    "), ins AS (INSERT INTO tocsin.job_live AS j (job_id, action_time, fire_at, gmt_create,"
    " gmt_modified, type_id, shard, max_attempts, biz_id, traceparent, attribute";
const std::string kInsertValues =
    ") SELECT k.job_id, coalesce(k.at, t.now + k.in_us * interval '1 microsecond'), greatest(coalesce(k.at, t.now + "
    "k.in_us * interval"
    " '1 microsecond'), t.now), t.now, t.now, k.type_id, k.shard, k.max_attempts, k.biz_id, k.traceparent, k.attribute";
const std::vector<ArrayColumn> kNewJob = {
    {"$1::bigint[]", "job_id"},  {"$2::smallint[]", "shard"},   {"$3::integer[]", "type_id"},
    {"$4::timestamptz[]", "at"}, {"$5::bigint[]", "in_us"},     {"$6::smallint[]", "max_attempts"},
    {"$7::text[]", "biz_id"},    {"$8::text[]", "traceparent"}, {"$9::jsonb[]", "attribute"}};
const std::string kCountCreated =
    "), n AS (INSERT INTO tocsin.job_count_delta (type_id, status, n, detail, event) SELECT type_id, 0, count(*), "
    "tocsin.created_detail(action_time, gmt_create), " +
    code(ReportEvent::created) + " FROM ins GROUP BY 1, 4) ";

}  // namespace

std::string create() {
  // Answers with one row: a row per job would cost a fifth more, and all but the clock is known to the caller.
  return kInsertNow + kInsertSelect + kInsertValues + " FROM t, " + side_by_side(kNewJob) +
         " RETURNING type_id, action_time, gmt_create" + kCountCreated +
         "SELECT now, (SELECT count(*) FROM ins) FROM t";
}

std::string create_keyed() {
  std::vector<ArrayColumn> columns = kNewJob;
  columns.insert(columns.end(),
                 {{"$10::text[]", "key"}, {"$11::text[]", "time_asked"}, {"$12::integer[]", "own_max_attempts"}});
  return kInsertNow + ", set_config('lock_timeout', coalesce($13::text, current_setting('lock_timeout')), true)" +
         kInsertSelect + ", idempotency_key, body_hash" + kInsertValues +
         ", k.key, tocsin.body_hash(k.time_asked, k.attribute, k.own_max_attempts) FROM t, " + side_by_side(columns) +
         " ON CONFLICT DO NOTHING RETURNING job_id, type_id, action_time, gmt_create" + kCountCreated +
         "SELECT job_id, (SELECT now FROM t) FROM ins";
}

std::string find_by_key() {
  const std::string keys =
      "unnest($1::bigint[], $2::smallint[], $3::integer[], $4::text[], $5::text[], $6::text[], $7::jsonb[], "
      "$8::integer[]) WITH ORDINALITY"
      " k (job_id, shard, type_id, biz_id, key, time_asked, attribute, own_max_attempts, ord)";
  return both(keys,
              "j.shard = k.shard AND j.biz_id = k.biz_id AND j.type_id = k.type_id AND j.idempotency_key = k.key AND "
              "j.job_id <> k.job_id",
              "j.biz_id = k.biz_id AND j.type_id = k.type_id AND j.idempotency_key = k.key",
              ", k.ord, j.body_hash = tocsin.body_hash(k.time_asked, k.attribute, k.own_max_attempts) AS is_same");
}

std::string update_existing() {
  return "WITH k AS MATERIALIZED (SELECT k.*, coalesce(k.given_at, clock_timestamp() + k.in_us * interval '1 "
         "microsecond') AS at FROM unnest($1::smallint[], $2::bigint[], $3::timestamptz[], $4::bigint[], $5::jsonb[], "
         "$6::smallint[], $7::text[], $8::integer[], $9::text[]) k (shard, job_id, given_at, in_us, attribute, "
         "max_attempts, time_asked, own_max_attempts, rule)),"
         // Lateral: a plain join may read all that is pending, and lock in an order of its own.
         " c AS MATERIALIZED (SELECT k.* FROM k CROSS JOIN LATERAL (SELECT FROM tocsin.job_live j WHERE j.shard = "
         "k.shard AND j.job_id = k.job_id AND j.status = 0 AND CASE k.rule WHEN 'earliest' THEN k.at < j.action_time "
         "WHEN 'latest' THEN k.at > j.action_time ELSE true END FOR UPDATE OF j) j) UPDATE tocsin.job_live j SET "
         "action_time = c.at, fire_at = greatest(c.at, clock_timestamp()), gmt_modified = clock_timestamp(), "
         "started_at = "
         "NULL, late_from = CASE WHEN c.at < clock_timestamp() THEN clock_timestamp() END, attribute "
         "= c.attribute, attempts = 0, max_attempts = c.max_attempts, body_hash = tocsin.body_hash(c.time_asked, "
         "c.attribute, c.own_max_attempts) FROM c WHERE j.shard = c.shard AND j.job_id = c.job_id AND j.status = 0 "
         "RETURNING " +
         std::string(kLiveColumns);
}

std::string still_pending() {
  return "SELECT j.job_id FROM unnest($1::smallint[], $2::bigint[]) k (shard, job_id) CROSS JOIN LATERAL (SELECT "
         "j.job_id FROM tocsin.job_live j WHERE j.shard = k.shard AND j.job_id = k.job_id AND j.status = 0 LIMIT 1) j";
}

std::string count_revived(const std::string& from) {
  return count_move(from, "4",
                    "SELECT d.type_id, 0, count(*), tocsin.day_of(d.gmt_create) * 64, " + code(ReportEvent::revived) +
                        ", NULL, NULL FROM " + from + " d GROUP BY 1, 4");
}

std::string undo_create() {
  return "WITH d AS (DELETE FROM tocsin.job_live j USING unnest($1::smallint[], $2::bigint[]) k (shard, job_id) WHERE "
         "j.shard = k.shard"
         " AND j.job_id = k.job_id RETURNING j.type_id, j.action_time, j.gmt_create) INSERT INTO "
         "tocsin.job_count_delta "
         "(type_id, status, n, detail, event) SELECT type_id, 0, -count(*), tocsin.created_detail(action_time, "
         "gmt_create), " +
         code(ReportEvent::created) + " FROM d GROUP BY 1, 4";
}

namespace {

const std::string kShortLockWait = "s AS MATERIALIZED (SELECT set_config('lock_timeout', '50ms', true)), ";

// `rows`: common table expressions, the last of which, d, deletes the live rows and answers them.
std::string cancel_rows(const std::string& rows, const std::string& answer) {
  return "WITH " + rows + ", j AS (INSERT INTO tocsin.job_history_cancelled " + kHistoryInto + " " +
         history_select("3", "d.started_at", "d.attempts", "d.node", "d.errors") + " RETURNING *), n AS (" +
         count_move("d", "0", count_end("d", "3", ReportEvent::cancelled)) + ") " + answer;
}

std::string lock_clause(CancelPass pass) {
  if (pass == CancelPass::together) return "";
  return std::string(" FOR UPDATE OF j") + (pass == CancelPass::skipping ? " SKIP LOCKED" : "");
}

}  // namespace

std::string cancel(CancelPass pass) {
  const std::string keys = side_by_side({{"$1::smallint[]", "shard"}, {"$2::bigint[]", "job_id"}});
  const auto matches = [](const std::string& key) {
    return "j.shard = " + key + ".shard AND j.job_id = " + key + ".job_id AND j.status = 0";
  };
  std::string rows = kShortLockWait + "c AS MATERIALIZED (SELECT k.* FROM s, " + keys + ")";
  if (pass != CancelPass::together) {
    rows = "c AS MATERIALIZED (SELECT j.shard, j.job_id FROM " + keys + " JOIN tocsin.job_live j ON " + matches("k") +
           lock_clause(pass) + ")";
  }
  rows += ", d AS (DELETE FROM tocsin.job_live j USING c WHERE " + matches("c") + " RETURNING j.*)";
  return cancel_rows(rows, std::string("SELECT ") + kHistoryColumns + " FROM j");
}

std::string cancel_keys_together() {
  const std::string mine = "j.biz_id = k.biz_id AND (k.type_id IS NULL OR j.type_id = k.type_id)";
  // Counted before anything is locked: of a key with too many live jobs, nothing is touched.
  return cancel_rows(
      kShortLockWait +
          "k AS MATERIALIZED (SELECT k.* FROM s, unnest($1::smallint[], $2::text[], $3::integer[]) WITH ORDINALITY k "
          "(shard, biz_id, type_id, ord)), l AS MATERIALIZED (SELECT k.ord, x.* FROM k CROSS JOIN LATERAL (SELECT x.*, "
          "count(*) OVER () AS n FROM (SELECT j.shard, j.job_id, j.status FROM tocsin.job_live j WHERE j.shard = "
          "k.shard AND " +
          mine +
          " ORDER BY j.job_id LIMIT $4::integer + 1) x) x), d AS (DELETE FROM tocsin.job_live j USING l WHERE l.n <= "
          "$4::integer AND l.status = 0 AND j.shard = l.shard AND j.job_id = l.job_id AND j.status = 0 RETURNING j.*, "
          "l.ord)",
      "SELECT d.ord, d.job_id, 3::smallint FROM d UNION ALL SELECT l.ord, l.job_id, l.status FROM l WHERE l.job_id <> "
      "ALL (ARRAY(SELECT d.job_id FROM d)) UNION ALL SELECT k.ord, h.job_id, 2 FROM k CROSS JOIN LATERAL (SELECT "
      "j.job_id FROM tocsin.job_history j WHERE " +
          mine + " ORDER BY j.job_id DESC LIMIT $5::integer + 1) h");
}

std::string cancel_keys() {
  const std::string keys =
      "unnest($1::smallint[], $2::text[], $3::integer[]) WITH ORDINALITY k (shard, biz_id, type_id, ord)";
  // Counted before anything is locked for good: of a key with too many, nothing is touched.
  const std::string rows =
      "(SELECT x.shard, x.job_id, count(*) OVER () AS n FROM (SELECT j.shard, j.job_id FROM tocsin.job_live j WHERE "
      "j.shard = k.shard AND j.biz_id = k.biz_id AND (k.type_id IS NULL OR j.type_id = k.type_id) AND j.status = 0 "
      "ORDER BY j.job_id LIMIT $4::integer + 1 FOR UPDATE OF j SKIP LOCKED) x) l";
  return cancel_rows(
      "c AS MATERIALIZED (SELECT k.ord, l.shard, l.job_id FROM " + keys + " CROSS JOIN LATERAL " + rows +
          " WHERE l.n <= $4::integer), d AS (DELETE FROM tocsin.job_live j USING c WHERE j.shard = c.shard "
          "AND j.job_id = c.job_id AND j.status = 0 RETURNING j.*, c.ord)",
      "SELECT ord, job_id FROM d");
}

std::string state_of_keys() {
  const std::string mine = "j.biz_id = k.biz_id AND (k.type_id IS NULL OR j.type_id = k.type_id)";
  return "SELECT k.ord, l.job_id, l.status FROM unnest($1::smallint[], $2::text[], $3::integer[]) WITH ORDINALITY k "
         "(shard, biz_id, type_id, ord) CROSS JOIN LATERAL ((SELECT j.job_id, j.status FROM tocsin.job_live j WHERE "
         "j.shard = k.shard AND " +
         mine +
         " ORDER BY j.job_id LIMIT $4::integer + 1) UNION ALL (SELECT j.job_id, 2::smallint FROM tocsin.job_history j "
         "WHERE " +
         mine + " ORDER BY j.job_id DESC LIMIT $5::integer + 1)) l";
}

std::string change_pending(CancelPass pass) {
  const std::string keys = side_by_side({{"$1::smallint[]", "shard"},
                                         {"$2::bigint[]", "job_id"},
                                         {"$3::timestamptz[]", "at"},
                                         {"$4::bigint[]", "in_us"}});
  std::string rows = kShortLockWait + "c AS MATERIALIZED (SELECT k.* FROM s, " + keys + ")";
  if (pass != CancelPass::together) {
    rows = "c AS MATERIALIZED (SELECT k.* FROM " + keys +
           " JOIN tocsin.job_live j ON j.shard = k.shard AND j.job_id = k.job_id AND j.status = 0" + lock_clause(pass) +
           ")";
  }
  return "WITH " + rows +
         " UPDATE tocsin.job_live j SET gmt_modified = clock_timestamp(), action_time = coalesce(c.at, "
         "statement_timestamp() + c.in_us * interval '1 microsecond', j.action_time), fire_at = "
         "greatest(coalesce(c.at, statement_timestamp() + c.in_us * interval '1 microsecond'), clock_timestamp()), "
         "started_at = CASE WHEN c.at IS NULL AND c.in_us IS NULL THEN j.started_at END, late_from = CASE WHEN c.at IS "
         "NULL AND c.in_us IS NULL THEN j.late_from WHEN c.at < clock_timestamp() THEN clock_timestamp() END FROM "
         "c WHERE j.shard = c.shard AND j.job_id = c.job_id AND j.status = 0 RETURNING " +
         std::string(kLiveColumns);
}

std::string find() {
  return both("unnest($1::smallint[], $2::bigint[]) k (shard, job_id)", "j.shard = k.shard AND j.job_id = k.job_id",
              "j.job_id = k.job_id");
}

std::string stands_for() {
  return "SELECT r.job_id, r.existing_job_id FROM unnest($1::bigint[]) k (job_id) JOIN tocsin.relayed r ON r.job_id = "
         "k.job_id WHERE r.existing_job_id IS NOT NULL";
}

std::string find_live() {
  return "SELECT " + std::string(kLiveColumns) +
         " FROM unnest($1::smallint[], $2::bigint[]) k (shard, job_id) JOIN tocsin.job_live j ON j.shard = k.shard AND "
         "j.job_id = k.job_id";
}

std::string list_keys() {
  const auto part = [](const char* columns, const std::string& from) {
    return "(SELECT " + std::string(columns) + " FROM " + from +
           "j.biz_id = k.biz_id AND j.job_id < k.below AND (k.type_id IS NULL OR j.type_id = k.type_id) ORDER BY "
           "j.job_id DESC LIMIT k.most)";
  };
  return "SELECT l.*, k.ord FROM unnest($1::smallint[], $2::text[], $3::integer[], $4::bigint[], $5::integer[]) WITH "
         "ORDINALITY k (shard, biz_id, type_id, below, most, ord) CROSS JOIN LATERAL (SELECT * FROM (" +
         part(kLiveColumns, "tocsin.job_live j WHERE j.shard = k.shard AND ") + " UNION ALL " +
         part(kHistoryColumns, "tocsin.job_history j WHERE ") + ") u ORDER BY u.job_id DESC LIMIT k.most) l";
}

}  // namespace tocsin::sql

#include "postgres/report_queries.h"

namespace tocsin::sql {
namespace {

// A time as the API writes it: texts compare as times do.
std::string iso(const std::string& column) {
  return "to_char(" + column + " AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"')";
}

struct Plan {
  std::string rows;             // a query
  std::string shown;            // of its rows, beside all columns: what is shown in another form
  std::string time;             // the key that from and to are about; empty: none, and no pages
  std::string key, second_key;  // the others
  bool is_newest_first = true;
};

const std::string kEvents =
    "s.created, s.done, s.cancelled, s.dead, s.dropped_late, s.revived, s.attempts, s.retried, s.max_ms";

std::string with_histogram(const std::string& columns, const std::string& grain, const std::string& more = "") {
  return "SELECT s.slot, t.name AS biz_type, " + columns +
         ", h.buckets FROM tocsin.report_slot s JOIN tocsin.biz_type t USING (type_id) LEFT JOIN "
         "tocsin.report_histogram h ON h.kind = 0 AND h.grain = " +
         grain + " AND h.slot = s.slot AND h.type_id = s.type_id WHERE s.grain = " + grain + more;
}

// Histograms of the rows that are asked for alone: they come from hours, or from quarters where days begin between
// hours.
std::string days_of_zone() {
  return "SELECT d.*, (SELECT tocsin.merge_histograms(tocsin.histogram_concat(h.buckets), '{}') FROM "
         "tocsin.report_histogram h JOIN tocsin.biz_type t USING (type_id) WHERE h.kind = 0 AND t.name = d.biz_type "
         "AND "
         "h.grain = CASE WHEN date_part('minute', d.slot AT TIME ZONE 'UTC') + date_part('minute', d.ends AT TIME ZONE "
         "'UTC') = 0 THEN 2 ELSE 1 END AND h.slot >= d.slot AND h.slot < d.ends) AS buckets FROM (SELECT d.slot, "
         "((d.slot AT TIME ZONE $8::text) + interval '1 day') AT TIME ZONE $8::text AS ends, d.biz_type, d.created, "
         "d.done, d.cancelled, d.dead, d.dropped_late, d.revived, d.attempts, d.retried, d.max_ms FROM "
         "tocsin.report_day_at($8::text, coalesce($2::timestamptz, statement_timestamp() - interval '31 days'), "
         "coalesce($3::timestamptz, 'infinity')) d) d";
}

Plan plan_of(Report report, bool is_of_zone) {
  const std::string type = "q.biz_type", slot = "'slot', " + iso("q.slot");
  switch (report) {
    case Report::hour:
      return {with_histogram(kEvents, "2"), slot, "slot", type, ""};
    case Report::day:
      return {is_of_zone ? days_of_zone() : with_histogram(kEvents, "3"), slot, "slot", type, ""};
    case Report::lateness:
      return {with_histogram("s.started AS n, s.max_ms", "2", " AND s.started > 0"), slot, "slot", type, ""};
    case Report::duration:
      return {
          "SELECT d.slot, t.name AS biz_type, CASE d.outcome WHEN 2 THEN 'done' WHEN 4 THEN 'dead' ELSE 'retry' "
          "END AS outcome, d.n, d.max_ms, h.buckets FROM tocsin.report_duration_hour d JOIN tocsin.biz_type t "
          "USING (type_id) LEFT JOIN tocsin.report_histogram h ON h.kind = d.outcome AND h.grain = 2 AND h.slot = "
          "d.slot AND h.type_id = d.type_id",
          slot, "slot", type, "q.outcome COLLATE \"C\""};
    case Report::slo:
      return {
          "SELECT t.name AS biz_type, (t.slo ->> 'lateness_ms')::double precision AS target_ms, (t.slo ->> "
          "'share')::double precision AS target_share, ceil(date_part('epoch', least($3::timestamptz, "
          "statement_timestamp()) - coalesce($2::timestamptz, statement_timestamp() - interval '30 days')) / "
          "86400)::bigint AS days, coalesce(r.n, 0)::bigint AS n, coalesce(r.missed, 0)::bigint AS missed FROM "
          "tocsin.biz_type t CROSS JOIN LATERAL (SELECT sum(r.started) AS n, sum(r.missed) AS missed FROM "
          "tocsin.report_slot r WHERE r.grain = 3 AND r.type_id = t.type_id AND r.slot > coalesce($2::timestamptz, "
          "statement_timestamp() - interval '30 days') - interval '1 microsecond' AND r.slot < "
          "coalesce($3::timestamptz, 'infinity')) r WHERE t.slo IS NOT NULL AND t.removed_at IS NULL",
          "", "", "", ""};
    case Report::dead:
      return {"SELECT * FROM tocsin.report_dead",
              slot + ", 'first_at', " + iso("q.first_at") + ", 'last_at', " + iso("q.last_at") +
                  ", 'sample_job_id', q.sample_job_id::text",
              "slot", type, "q.reason COLLATE \"C\""};
    case Report::dead_now:
      // The newest jobs alone, for texts are read: is_exact says when there are more.
      return {
          "SELECT t.name AS biz_type, d.reason, d.n, d.is_exact, d.first_at, d.last_at, d.sample_job_id FROM (WITH x "
          "AS "
          "MATERIALIZED (SELECT h.type_id, h.errors -> -1 ->> 'message' AS message, h.finished_at, h.job_id FROM "
          "tocsin.job_history_dead h WHERE tocsin.lives_here(h.shard) AND ($1::text IS NULL OR h.type_id = (SELECT "
          "b.type_id FROM tocsin.biz_type b WHERE b.name = $1::text AND b.removed_at IS NULL)) ORDER BY h.job_id DESC "
          "LIMIT 10001) SELECT x.type_id, tocsin.death_reason(x.message) AS reason, count(*) AS n, (SELECT count(*) "
          "FROM "
          "x) <= 10000 AS is_exact, min(x.finished_at) AS first_at, max(x.finished_at) AS last_at, max(x.job_id) AS "
          "sample_job_id FROM x GROUP BY 1, 2) d JOIN tocsin.biz_type t USING (type_id)",
          "'first_at', " + iso("q.first_at") + ", 'last_at', " + iso("q.last_at") +
              ", 'sample_job_id', q.sample_job_id::text",
          "", "", ""};
    case Report::outcome:
      return {"SELECT * FROM tocsin.report_outcome", "'created_day', " + iso("q.created_day"), "created_day", type, ""};
    case Report::delay:
      return {
          "SELECT t.name AS biz_type, CASE d.bucket WHEN 0 THEN 0 ELSE 1000 * 2 ^ (d.bucket - 1) END AS from_ms, "
          "1000 * 2 ^ d.bucket AS to_ms, sum(d.n)::bigint AS n FROM tocsin.report_delay_day d JOIN tocsin.biz_type "
          "t USING (type_id) WHERE d.day::timestamp AT TIME ZONE 'UTC' >= coalesce($2::timestamptz, '-infinity') "
          "AND d.day::timestamp AT TIME ZONE 'UTC' < coalesce($3::timestamptz, 'infinity') GROUP BY t.name, "
          "d.bucket",
          "", "", "", ""};
    case Report::horizon:
      return {"SELECT * FROM tocsin.horizon",
              slot + ", 'counted_at', " + iso("q.counted_at"),
              "slot",
              "q.width COLLATE \"C\"",
              type,
              false};
    case Report::backlog:
      // A type without due jobs is in every range, with zeros.
      return {
          "SELECT * FROM tocsin.backlog b WHERE coalesce(b.oldest_due_at >= $2::timestamptz, true) AND "
          "coalesce(b.oldest_due_at < $3::timestamptz, true)",
          "'oldest_due_at', " + iso("q.oldest_due_at"), "", "", ""};
    case Report::audit:
      return {
          "SELECT a.audit_id, a.at, a.actor, a.role, a.address, a.action, a.target, a.filter, a.matched, "
          "coalesce(a.changed, b.changed) AS changed, a.reason, coalesce(a.filter ->> 'biz_type', a.target) AS "
          "biz_type, lpad(a.audit_id::text, 20, '0') AS audit_key FROM tocsin.audit_log a LEFT JOIN tocsin.bulk b ON "
          "a.action = 'startBulk' AND b.bulk_id = CASE a.action WHEN 'startBulk' THEN a.target::bigint END",
          "'at', " + iso("q.at") + ", 'audit_id', NULL", "at", "q.audit_key", ""};
    case Report::recent:
    case Report::recent_of_all: {
      // The quarter that runs, and the one before it until that has been over for ten minutes.
      const std::string since =
          "date_bin('15 minutes', statement_timestamp() - interval '10 minutes', '2000-01-01 00:00:00+00')";
      return {
          std::string(report == Report::recent ? "SELECT t.name" : "SELECT NULL::text") +
              " AS biz_type, coalesce(sum(s.created), 0)::bigint AS created, coalesce(sum(s.done), 0)::bigint AS done, "
              "coalesce(sum(s.dead), 0)::bigint AS dead, coalesce(sum(s.started), 0)::bigint AS n, "
              "coalesce(sum(s.missed), 0)::bigint AS missed, max(s.max_ms) AS max_ms, date_part('epoch', "
              "statement_timestamp() - " +
              since +
              ") AS seconds, tocsin.merge_histograms(tocsin.histogram_concat(h.buckets), '{}') AS buckets, "
              "(min(t.slo ->> 'lateness_ms'))::double precision AS target_ms, (min(t.slo ->> 'share'))::double "
              "precision AS target_share FROM tocsin.report_slot s JOIN tocsin.biz_type t USING (type_id) LEFT "
              "JOIN tocsin.report_histogram h ON h.kind = 0 AND h.grain = 1 AND h.slot = s.slot AND h.type_id = "
              "s.type_id WHERE s.grain = 1 AND s.slot >= " +
              since + (report == Report::recent ? " GROUP BY t.name" : ""),
          "", "", "", ""};
    }
  }
  return {};
}

}  // namespace

std::string report(Report report, bool is_of_zone) {
  const Plan plan = plan_of(report, is_of_zone);
  std::string sql = "SELECT to_jsonb(q) || jsonb_build_object(" + plan.shown + ") FROM (" + plan.rows +
                    ") q WHERE ($1::text IS NULL OR q.biz_type = $1::text) AND $4::integer > 0";
  if (plan.time.empty()) {
    // Each parameter has to have a type.
    return sql + " AND num_nonnulls($2::timestamptz, $3::timestamptz, $5::text, $6::text, $7::text) >= 0";
  }
  const std::string time = "q." + plan.time;
  const std::string keys = plan.second_key.empty()
                               ? plan.key + " > $6::text"
                               : "ROW(" + plan.key + ", " + plan.second_key + ") > ROW($6::text, $7::text)";
  const bool is_down = plan.is_newest_first;
  sql += " AND " + time + " >= coalesce($2::timestamptz, '-infinity') AND " + time +
         " < coalesce($3::timestamptz, 'infinity') AND " + time +
         (is_down ? " <= coalesce($5::timestamptz, 'infinity')" : " >= coalesce($5::timestamptz, '-infinity')") +
         " AND ($5::timestamptz IS NULL OR " + time + " <> $5::timestamptz OR " + keys +
         ") AND ($7::text IS NULL OR true) ORDER BY " + time + (is_down ? " DESC, " : ", ") + plan.key +
         (plan.second_key.empty() ? "" : ", " + plan.second_key) + " LIMIT $4::integer";
  return sql;
}

std::string fold_counts() {
  const std::string columns = "created, done, cancelled, dead, dropped_late, revived, attempts, retried";
  std::string added = "version = r.version + 1";
  for (const char* column :
       {"created", "done", "cancelled", "dead", "dropped_late", "revived", "attempts", "retried"}) {
    added += ", " + std::string(column) + " = r." + column + " + excluded." + column;
  }
  // Deltas are deleted and their sums added in one statement: a reader sees both or neither, and each counts once.
  // One node at a time: rows that are locked before they are deleted cost as much log again as their deletion. Without
  // the lock the sums would be right, too (a deletion returns what it deleted itself), but nodes would wait.
  return "WITH d AS (DELETE FROM tocsin.job_count_delta WHERE ctid = ANY (ARRAY(SELECT r.ctid FROM (SELECT "
         "pg_try_advisory_xact_lock(hashtextextended('tocsin.fold_counts', 0)) AS is_mine OFFSET 0) l JOIN "
         "tocsin.job_count_delta r ON l.is_mine LIMIT 50000)) RETURNING *), f AS (INSERT INTO tocsin.job_count "
         "AS c SELECT type_id, status, sum(n) FROM d WHERE status IS NOT NULL GROUP BY 1, 2 ORDER BY 1, 2 ON CONFLICT "
         "(type_id, status) DO UPDATE SET n = c.n + excluded.n), "
         // Events by slot, in all grains.
         "e AS MATERIALIZED (SELECT date_bin('15 minutes', at, '2000-01-01 00:00:00+00') AS slot, type_id, detail >> 6 "
         "AS day, coalesce(sum(n) FILTER (WHERE event = 1), 0) AS created, coalesce(sum(n) FILTER (WHERE event IN (2, "
         "9)), 0) AS done, coalesce(sum(n) FILTER (WHERE event = 3), 0) AS cancelled, coalesce(sum(n) FILTER (WHERE "
         "event IN (4, 5)), 0) AS dead, coalesce(sum(n) FILTER (WHERE event = 5), 0) AS dropped_late, coalesce(sum(n) "
         "FILTER (WHERE event = 6), 0) AS revived, coalesce(sum(CASE event WHEN 10 THEN -n ELSE n END) FILTER (WHERE "
         "event IN (7, 9, 10)), 0) AS attempts, coalesce(sum(n) FILTER (WHERE event = 8), 0) AS retried FROM d WHERE "
         "event IS NOT NULL GROUP BY 1, 2, 3), s AS (INSERT INTO tocsin.report_slot AS r (grain, slot, type_id, " +
         columns +
         ") SELECT g.grain, date_bin(g.width, e.slot, '2000-01-01 00:00:00+00'), e.type_id, sum(created), sum(done), "
         "sum(cancelled), sum(dead), sum(dropped_late), sum(revived), sum(attempts), sum(retried) FROM e, (VALUES "
         "(1::smallint, interval '15 minutes'), (2, '1 hour'), (3, '1 day')) g (grain, width) GROUP BY 1, 2, 3 ORDER "
         "BY 1, 2, 3 ON CONFLICT (grain, slot, type_id) DO UPDATE SET " +
         added +
         "), o AS (INSERT INTO tocsin.report_created_day AS r (day, type_id, created, done, cancelled, dead) SELECT "
         "date '1970-01-01' + day, type_id, sum(created), sum(done), sum(cancelled), sum(dead) - sum(revived) FROM e "
         "WHERE day IS NOT NULL GROUP BY 1, 2 ORDER BY 1, 2 ON CONFLICT (day, type_id) DO UPDATE SET created = "
         "r.created + excluded.created, done = r.done + excluded.done, cancelled = r.cancelled + excluded.cancelled, "
         "dead = r.dead + excluded.dead), "
         "l AS (INSERT INTO tocsin.report_delay_day AS r SELECT date '1970-01-01' + (detail >> 6), type_id, detail & "
         "63, "
         "sum(n) FROM d WHERE event = 1 GROUP BY 1, 2, 3 ORDER BY 1, 2, 3 ON CONFLICT (day, type_id, bucket) DO UPDATE "
         "SET n = r.n + excluded.n), "
         // Reasons: the first 200 of a type and day, then "other". Nodes that fold at once may each add their last
         // ones.
         "x AS (SELECT date_bin('1 day', at, '2000-01-01 00:00:00+00') AS slot, type_id, coalesce(reason, '') AS "
         "reason, sum(n) AS n, min(at) "
         "AS first_at, max(at) AS last_at, max(sample_job_id) AS sample FROM d WHERE event IN (4, 5) GROUP BY 1, 2, "
         "3), "
         "y AS (SELECT x.*, EXISTS (SELECT FROM tocsin.report_death p WHERE p.slot = x.slot AND p.type_id = x.type_id "
         "AND p.reason = x.reason) AS is_known, (SELECT count(*) FROM tocsin.report_death p WHERE p.slot = x.slot AND "
         "p.type_id = x.type_id AND p.reason <> 'other') AS known FROM x), z AS (SELECT y.*, is_known OR known + "
         "row_number() OVER (PARTITION BY slot, type_id, is_known ORDER BY reason) <= $1::integer AS is_named FROM y), "
         "w AS (INSERT INTO tocsin.report_death AS r SELECT slot, type_id, CASE WHEN is_named THEN reason ELSE 'other' "
         "END, sum(n), min(first_at), max(last_at), max(sample) FROM z GROUP BY 1, 2, 3 ORDER BY 1, 2, 3 ON CONFLICT "
         "(slot, type_id, reason) DO UPDATE SET n = r.n + excluded.n, first_at = least(r.first_at, excluded.first_at), "
         "last_at = greatest(r.last_at, excluded.last_at), sample_job_id = coalesce(excluded.sample_job_id, "
         "r.sample_job_id)) SELECT count(*) FROM d";
}

std::string flush_histograms() {
  // A flush that was written already, and whose answer was lost, finds its number taken and adds nothing.
  return "WITH g AS (INSERT INTO tocsin.report_flush AS r (node_id, seq) VALUES ($1::bigint, $2::bigint) ON "
         "CONFLICT (node_id) DO UPDATE SET seq = excluded.seq, flushed_at = excluded.flushed_at WHERE r.seq < "
         "excluded.seq RETURNING node_id), e AS MATERIALIZED (SELECT k.kind, w.grain, date_bin(w.width, "
         "k.slot, '2000-01-01 00:00:00+00') AS slot, k.type_id, sum(k.n) AS n, sum(k.missed) AS missed, "
         "max(k.max_ms) AS max_ms, tocsin.merge_histograms(tocsin.histogram_concat(k.buckets::bigint[]), '{}')"
         " AS buckets FROM g, unnest($3::smallint[], $4::timestamptz[], $5::integer[], $6::bigint[], "
         "$7::bigint[], $8::double precision[], $9::text[]) k (kind, slot, type_id, n, missed, max_ms, "
         "buckets), (VALUES (1::smallint, interval '15 minutes'), (2, '1 hour'), (3, '1 day')) w (grain, "
         "width) WHERE k.kind = 0 OR w.grain = 2 GROUP BY 1, 2, 3, 4), h AS (INSERT INTO "
         "tocsin.report_histogram AS r SELECT kind, grain, slot, type_id, buckets FROM e ORDER BY 1, 2, 3, 4 "
         "ON CONFLICT (kind, grain, slot, type_id) DO UPDATE SET buckets = tocsin.merge_histograms(r.buckets, "
         "excluded.buckets) RETURNING *), q AS MATERIALIZED (SELECT e.*, tocsin.histogram_quantiles(h.buckets)"
         " AS p FROM h JOIN e USING (kind, grain, slot, type_id)), s AS (INSERT INTO tocsin.report_slot AS r "
         "(grain, slot, type_id, started, missed, p50_ms, p90_ms, p99_ms, max_ms) SELECT grain, slot, type_id,"
         " n, missed, p[1], p[2], p[3], max_ms FROM q WHERE kind = 0 ORDER BY 1, 2, 3 ON CONFLICT (grain, "
         "slot, type_id) DO UPDATE SET version = r.version + 1, started = r.started + excluded.started, missed = "
         "r.missed + "
         "excluded.missed, max_ms = greatest(r.max_ms, excluded.max_ms), p50_ms = excluded.p50_ms, p90_ms = "
         "excluded.p90_ms, p99_ms = excluded.p99_ms), d AS (INSERT INTO tocsin.report_duration_hour AS r "
         "SELECT slot, type_id, kind, n, p[1], p[2], p[3], max_ms FROM q WHERE kind <> 0 ORDER BY 1, 2, 3 ON "
         "CONFLICT (slot, type_id, outcome) DO UPDATE SET n = r.n + excluded.n, p50_ms = excluded.p50_ms, "
         "p90_ms = excluded.p90_ms, p99_ms = excluded.p99_ms, max_ms = greatest(r.max_ms, excluded.max_ms)) "
         "SELECT count(*) FROM g";
}

}  // namespace tocsin::sql

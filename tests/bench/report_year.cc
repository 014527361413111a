#include "bench/report_year.h"

#include <chrono>
#include <iterator>
#include <pqxx/pqxx>
#include <vector>

#include "base/progress.h"
#include "support/server.h"

namespace tocsin::bench {
namespace {

// Made-up, but different in every slot: n jobs each, whose lateness has 8 to 30 buckets.
constexpr const char* kQuarters =
    "CREATE UNLOGGED TABLE public.quarter AS SELECT s.slot, t.type_id, 20 + k.seed % 16 AS n, k.seed FROM "
    "generate_series(date_bin('15 minutes', now() - interval '365 days', '2000-01-01 00:00:00+00'), now(), interval "
    "'15 "
    "minutes') s (slot), tocsin.biz_type t, LATERAL (SELECT hashint8(extract(epoch FROM s.slot)::bigint * t.type_id) & "
    "1023 AS seed) k";

constexpr const char* kSlots =
    "INSERT INTO tocsin.report_slot (grain, type_id, slot, created, done, cancelled, dead, dropped_late, revived, "
    "attempts, retried, started, missed, p50_ms, p90_ms, p99_ms, max_ms) SELECT g.grain, q.type_id, date_bin(g.width, "
    "q.slot, '2000-01-01 00:00:00+00'), sum(n), sum(n) - 2, 1, 1, 0, 0, sum(n), sum(seed % 3), sum(n), sum(seed % 2), "
    "1.015625 + min(seed) / 1000.0, 3.4375 + avg(seed) / 999.0, 9.8 + max(seed) / 101.0, 12 + max(seed) / 7.0 FROM "
    "public.quarter q, (VALUES (1::smallint, interval '15 minutes'), (2, '1 hour'), (3, '1 day')) g (grain, width) "
    "GROUP BY 1, 2, 3 ORDER BY 1, 3, 2";

std::string histograms(int grain, const std::string& width, int buckets, const std::string& kind) {
  return "INSERT INTO tocsin.report_histogram SELECT " + kind + ", " + std::to_string(grain) +
         ", q.slot, q.type_id, (SELECT array_agg(((120 + i * 3 + q.seed % 3)::bigint << 44) + 1 + (q.seed + i) % 5 "
         "ORDER "
         "BY i) FROM generate_series(1, " +
         std::to_string(buckets) + " + q.seed % 8) i) FROM public.quarter q WHERE q.slot = date_bin('" + width +
         "', q.slot, '2000-01-01 00:00:00+00') ORDER BY q.slot, q.type_id";
}

constexpr const char* kOthers[] = {
    "INSERT INTO tocsin.report_duration_hour SELECT slot, type_id, 2, started, p50_ms, p90_ms, p99_ms, max_ms FROM "
    "tocsin.report_slot WHERE grain = 2 ORDER BY 1, 2",
    "INSERT INTO tocsin.report_created_day SELECT (slot AT TIME ZONE 'UTC')::date, type_id, created, done, cancelled, "
    "dead FROM tocsin.report_slot WHERE grain = 3 ORDER BY 1, 2",
    "INSERT INTO tocsin.report_delay_day SELECT (slot AT TIME ZONE 'UTC')::date, type_id, b, 7 FROM "
    "tocsin.report_slot, "
    "generate_series(1, 20) b WHERE grain = 3 ORDER BY 1, 2, 3",
    "INSERT INTO tocsin.report_death SELECT slot, type_id, 'answered ' || 500 + i || ' by #.#.#.#:#', 3, slot, slot, 1 "
    "FROM tocsin.report_slot, generate_series(1, 5) i WHERE grain = 3 ORDER BY 1, 2, 3",
    "INSERT INTO tocsin.horizon_slot SELECT w.name, date_trunc(w.name, now(), 'UTC') + i * ('1 ' || w.name)::interval, "
    "type_id, 100, 90, 110, false, now() FROM tocsin.biz_type, (VALUES ('minute', 120), ('hour', 168), ('day', 90)) w "
    "(name, n), generate_series(0, w.n - 1) i",
    "INSERT INTO tocsin.audit_log (at, actor, role, action, target) SELECT now() - i * interval '5 minutes', 'bench', "
    "'producer', 'createJobs', 'order.unpaid' FROM generate_series(1, 100000) i",
    "DROP TABLE public.quarter",
    "VACUUM (ANALYZE)"};

}  // namespace

void write_report_year(const std::string& database) {
  std::vector<std::string> statements = {kQuarters,
                                         kSlots,
                                         histograms(1, "15 minutes", 8, "0"),
                                         histograms(2, "1 hour", 16, "0"),
                                         histograms(3, "1 day", 22, "0"),
                                         histograms(2, "1 hour", 12, "2")};
  statements.insert(statements.end(), std::begin(kOthers), std::end(kOthers));
  Progress progress("writing a year of reports");
  for (std::size_t i = 0; i < statements.size(); ++i) {
    progress.show(static_cast<std::int64_t>(i), static_cast<std::int64_t>(statements.size()));
    execute(database, statements[i]);
  }
}

double keep_zone_days_of_a_day(const std::string& database) {
  constexpr int kCalls = 5;  // for the 37 beginnings of one UTC day, 8 each
  pqxx::connection connection(database);
  pqxx::nontransaction tx(connection);
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < kCalls; ++i) tx.exec("SELECT tocsin.keep_zone_days()");
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

std::vector<double> horizon_counts_ms(const std::string& database) {
  pqxx::connection connection(database);
  pqxx::nontransaction tx(connection);
  const auto types = tx.exec1("SELECT count(*) FROM tocsin.biz_type")[0].as<std::size_t>();
  std::vector<double> ms;
  while (ms.size() < types) {
    const auto start = std::chrono::steady_clock::now();
    tx.exec1("SELECT tocsin.count_horizon()");
    ms.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
  }
  tx.exec("UPDATE tocsin.horizon_type SET counted_at = now() - interval '1 hour'");
  return ms;
}

void keep_days_of_read_zones(const std::string& database) {
  constexpr const char* kDays =
      "CREATE TABLE public.zone_day AS SELECT d.slot, v.version FROM (SELECT DISTINCT g AT TIME ZONE z AS slot FROM "
      "unnest('{UTC,Europe/Berlin,America/New_York,Asia/Kathmandu}'::text[]) z, generate_series(date_trunc('day', "
      "now() - interval '367 days', 'UTC')::timestamp, now()::timestamp, interval '1 day') g) d JOIN "
      "tocsin.report_day_version v ON v.day = date_trunc('day', d.slot + interval '24 hours' - interval '1 "
      "microsecond', 'UTC') WHERE v.day < now() - interval '25 hours' AND NOT EXISTS (SELECT FROM "
      "tocsin.report_zone_start k WHERE k.slot = d.slot)";
  for (const char* statement :
       {kDays,
        "INSERT INTO tocsin.report_zone_day SELECT * FROM tocsin.report_spans(ARRAY(SELECT slot FROM public.zone_day "
        "ORDER BY 1), ARRAY(SELECT slot + interval '24 hours' FROM public.zone_day ORDER BY slot)) ON CONFLICT DO "
        "NOTHING",
        "INSERT INTO tocsin.report_zone_start SELECT * FROM public.zone_day ON CONFLICT DO NOTHING",
        "INSERT INTO tocsin.report_zone_start SELECT s.slot, v.version FROM tocsin.report_day_version v CROSS JOIN "
        "generate_series(15, 1440, 15) m CROSS JOIN LATERAL (SELECT v.day - interval '24 hours' + m * interval '1 "
        "minute' AS slot) s ON CONFLICT DO NOTHING",
        "DROP TABLE public.zone_day", "VACUUM (ANALYZE) tocsin.report_zone_day",
        "VACUUM (ANALYZE) tocsin.report_zone_start"})
    execute(database, statement);
}

}  // namespace tocsin::bench

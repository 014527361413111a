// A database with one type, and jobs that live through every kind of event, for tests of the report tables.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/log_histogram.h"
#include "postgres/pg_client_store.h"
#include "postgres/pg_job_store.h"
#include "postgres/pg_maintenance.h"
#include "support/must.h"
#include "support/test_database.h"

namespace tocsin {

class ReportClock final : public Clock {
 public:
  MonoTime now() const override { return {}; }
};

class ReportTables : public testing::Test {
 protected:
  ReportTables() {
    type_id = static_cast<TypeId>(
        database.number("INSERT INTO tocsin.biz_type (name, handler, ttr_ms, max_attempts, backoff, catch_up, slo) "
                        "VALUES ('order.unpaid', '{\"kind\":\"noop\"}', 30000, 16, '{}', '{\"drop_older_than_ms\": "
                        "3600000}', '{\"lateness_ms\": 1000, \"share\": 0.99}') RETURNING type_id"));
  }

  JobId create(const std::string& biz_id, Duration in = Duration(0)) {
    NewJob job;
    job.biz_id = biz_id;
    job.type_id = type_id;
    job.when.in = in;
    return must(client_store.create({&job, 1}, CreateMode::each_by_itself)).at(0).job_id;
  }
  ClaimedJob claim(JobId id, Duration ttr = std::chrono::hours(1)) {
    const Candidate seen{id, type_id, {}};
    return must(store.claim({&seen, 1}, {&ttr, 1}, {++seed_, "node-a"})).won.at(0);
  }
  void finish(const ClaimedJob& claimed, FinishRequest::Kind kind, const std::string& message = "") {
    const FinishRequest request{claimed.job.job_id, claimed.token, kind, Duration(0), message};
    ASSERT_EQ(must(store.finish({&request, 1}, "node-a")).at(0), FinishReply::applied);
  }
  void kill(JobId id, const std::string& why) { finish(claim(id), FinishRequest::Kind::dead, why); }
  void fold() {
    while (must(maintenance.fold_counts()) > 0) {
    }
  }
  // "created done cancelled dead dropped_late revived attempts retried" of a view.
  std::string sums(const std::string& view) {
    const auto row = database.query(
        "SELECT sum(created), sum(done), sum(cancelled), sum(dead), sum(dropped_late), sum(revived), sum(attempts), "
        "sum(retried) FROM " +
        view)[0];
    std::string text;
    for (const auto& field : row) text += (text.empty() ? "" : " ") + std::string(field.c_str());
    return text;
  }
  // Every kind of event once or more. Leaves one job pending.
  void live() {
    const JobId fired = create("a");
    const Candidate seen{fired, type_id, {}};
    ASSERT_EQ(must(store.fire({&seen, 1}, "node-a")).size(), 1U);
    const JobId retried = create("b");
    finish(claim(retried), FinishRequest::Kind::retry, "no");
    finish(claim(retried), FinishRequest::Kind::release_claim);
    finish(claim(retried), FinishRequest::Kind::done);
    const JobId cancelled = create("c", std::chrono::hours(1));
    must(client_store.cancel({&cancelled, 1}, LockWait::some_seconds));
    const JobId dead = create("d");
    kill(dead, "order 4711 is broken");
    must(client_store.retry_each({&dead, 1}));
    claim(dead, Duration(1));
    database.query("SELECT pg_sleep(0.002)");
    finish(claim(dead), FinishRequest::Kind::done);  // its lease had ended: another attempt
    const JobId late = create("e");
    database.query("UPDATE tocsin.job_live SET fire_at = fire_at - interval '2 hours' WHERE job_id = " +
                   std::to_string(late));
    ASSERT_EQ(must(store.drop_too_late({shard_of(late), type_id}, WallTime::max(), 10, 0, "node-a")), 1);
    database.query("SELECT tocsin.cancel_job(tocsin.create_job('order.unpaid', 'f', now() + interval '1 day', NULL))");
    create("g", std::chrono::hours(1));
  }
  static constexpr const char* kLived = "7 3 2 2 1 1 6 1";

  TestDatabase database;
  Session session{SessionConfig{database.url()}};
  ReportClock clock_;
  PgJobStore store{session, clock_};
  PgClientStore client_store{session, 8};
  PgMaintenance maintenance{session};
  TypeId type_id = 0;
  std::int64_t seed_ = 0;
};

inline ReportHistogram histogram(TypeId type, const std::vector<int>& ms, ReportKind kind = ReportKind::lateness) {
  ReportHistogram all;
  all.kind = kind;
  all.slot = WallTime(std::chrono::hours(500'000));
  all.type_id = type;
  for (const int each : ms) {
    ++all.n;
    all.missed += each > 1000;
    all.max = std::max<Duration>(all.max, std::chrono::milliseconds(each));
    ++all.buckets[histogram_bucket(static_cast<std::uint64_t>(each) * 1000)];
  }
  return all;
}

}  // namespace tocsin

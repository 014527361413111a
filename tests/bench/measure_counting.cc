// What counting events costs: nodes on two databases in turns. One counts as ever; the other has been changed, by this
// measurement, to keep how many jobs have which status, and nothing of what happened.
#include <functional>
#include <iostream>
#include <map>

#include "bench/measurements.h"
#include "bench/subject.h"
#include "bench/workloads.h"
#include "cli/pause.h"
#include "support/server.h"

namespace tocsin::bench {
namespace {

// Statements insert into job_count_delta as ever. The rule sends their rows to a child table, where counts are read and
// folded as before, without event, detail, time, sample and reason. The functions no longer compute a detail, so that
// jobs of different days and delays share a row.
constexpr const char* kWithoutEvents[] = {
    "ALTER TABLE tocsin.job_count_delta ALTER at DROP NOT NULL, ALTER at DROP DEFAULT",
    "CREATE TABLE tocsin.job_count_plain () INHERITS (tocsin.job_count_delta) WITH (autovacuum_vacuum_threshold = "
    "1000, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_cost_delay = 0)",
    "CREATE RULE without_events AS ON INSERT TO tocsin.job_count_delta DO INSTEAD INSERT INTO tocsin.job_count_plain "
    "(type_id, status, n) VALUES (NEW.type_id, NEW.status, NEW.n)",
    "CREATE OR REPLACE FUNCTION tocsin.created_detail(action_time timestamptz, gmt_create timestamptz) RETURNS integer "
    "LANGUAGE sql STABLE PARALLEL SAFE RETURN NULL::integer",
    "CREATE OR REPLACE FUNCTION tocsin.day_of(at timestamptz) RETURNS integer LANGUAGE sql STABLE PARALLEL SAFE RETURN "
    "NULL::integer"};

constexpr auto kFoldPause = std::chrono::milliseconds(50);
constexpr auto kFoldedWithin = std::chrono::seconds(30);

struct CostPerJob {
  double us = 0, wal_bytes = 0;
};
using Costs = std::map<std::string, CostPerJob>;

struct WorkDone {
  double seconds = 0;
  std::int64_t jobs = 0;
};

double number_of(Subject& subject, const std::string& sql) {
  return pqxx::nontransaction(subject.sql()).exec1(sql)[0].as<double>();
}

// Until the counts of all that happened are written: they are part of the cost.
void wait_until_folded(Subject& subject) {
  const auto end = std::chrono::steady_clock::now() + kFoldedWithin;
  while (number_of(subject, "SELECT count(*) FROM tocsin.job_count_delta") > 0) {
    if (std::chrono::steady_clock::now() > end) throw Failure("the counts are not folded");
    pause_for(kFoldPause);
  }
}

WorkDone live_in_batches(Subject& subject, std::size_t n) {
  const WallTime due = subject.db_now() + std::chrono::seconds(3 + static_cast<int>(n / 10'000));
  const double creating = subject.create(jobs_due_at(due, n)).seconds;
  if (subject.db_now() > due) throw Failure("some jobs were due before all were created");
  subject.wait_until(due, "waiting for the deadline");
  subject.wait_until_finished(static_cast<std::int64_t>(n), "firing");
  const std::chrono::duration<double> firing = subject.last_finished_at(due) - due;
  return {creating + firing.count(), static_cast<std::int64_t>(n)};
}

WorkDone live_alone(Subject& subject, std::size_t n) {
  const WallTime due = subject.db_now();
  Load load;
  load.port = subject.port();
  load.connections = 1;
  load.expected_status = 201;
  load.next = [&](std::int64_t i, std::string& request) {
    if (i >= static_cast<std::int64_t>(n)) return false;
    request = request_text("POST", "/v1/jobs", job_body({i, due}));
    return true;
  };
  const LoadReport report = run_strict_load(load);
  subject.wait_until_finished(report.answered, "firing");
  return {report.seconds, report.answered};
}

WorkDone create_singly(Subject& subject, double lasts) {
  const LoadReport report = create_for(subject, lasts);
  return {report.seconds, report.answered};
}

class CountingStand {
 public:
  CountingStand(Bench& bench, bool counts_events)
      : database_(bench.server), options_{bench.binary}, sizes_(bench.sizes), counts_events_(counts_events) {
    Subject(database_.url(), options_).stop();  // migrates
    if (counts_events_) return;
    for (const char* statement : kWithoutEvents) execute(database_.url(), statement);
  }

  Costs run() {
    Subject subject(database_.url(), options_);
    subject.settle();
    Costs costs;
    costs["batches"] = cost_of(subject, [&] { return live_in_batches(subject, sizes_.counting_jobs); });
    costs["alone"] = cost_of(subject, [&] { return live_alone(subject, sizes_.counting_jobs / 10); });
    costs["single"] = cost_of(subject, [&] { return create_singly(subject, sizes_.request_s / 2); });
    const bool has_counted = number_of(subject, "SELECT coalesce(sum(created), 0) FROM tocsin.report_slot") > 0;
    if (has_counted != counts_events_) throw Failure("events are counted where they should not be, or the reverse");
    subject.stop();
    return costs;
  }

 private:
  static CostPerJob cost_of(Subject& subject, const std::function<WorkDone()>& work) {
    const std::string wal = "SELECT pg_current_wal_lsn() - '0/0'";
    const double before = number_of(subject, wal);
    const WorkDone done = work();
    wait_until_folded(subject);
    const auto jobs = static_cast<double>(done.jobs);
    return {1e6 * done.seconds / jobs, (number_of(subject, wal) - before) / jobs};
  }

  const Database database_;
  const SubjectOptions options_;
  const Sizes& sizes_;
  const bool counts_events_;
};

}  // namespace

void measure_counting(Bench& bench) {
  CountingStand counting(bench, true), plain(bench, false);
  for (int pair = 0; pair < bench.sizes.counting_pairs; ++pair) {
    std::cerr << "counting, pair " << pair + 1 << '/' << bench.sizes.counting_pairs << '\n';
    Costs with, without;
    if (pair % 2 == 0) with = counting.run();
    without = plain.run();
    if (pair % 2 == 1) with = counting.run();
    for (const auto& [work, cost] : with) {
      const CostPerJob& base = without.at(work);
      const std::string prefix = "counting." + work;
      bench.results.add(prefix + ".us", cost.us);
      bench.results.add(prefix + ".us_plain", base.us);
      bench.results.add(prefix + ".time_ratio", cost.us / base.us);
      bench.results.add(prefix + ".wal", cost.wal_bytes);
      bench.results.add(prefix + ".wal_plain", base.wal_bytes);
      bench.results.add(prefix + ".wal_ratio", cost.wal_bytes / base.wal_bytes);
    }
  }
}

}  // namespace tocsin::bench

// What many types cost: idle, and with a few jobs for each; beside one type, which must cost nearly as much. What jobs
// of pull types cost that no consumer asks for.
#include <algorithm>
#include <chrono>
#include <deque>
#include <utility>

#include "bench/measurements.h"
#include "bench/preload.h"
#include "bench/processor_time.h"
#include "bench/subject.h"

namespace tocsin::bench {
namespace {

constexpr std::size_t kRate = 100;  // jobs per second, of all types together

struct TypesOutcome {
  double far_off_ms = 0, far_off_stats_ms = 0;  // with a far-off job in most lanes
  double many_far_off_ms = 0;                   // with more of them in each lane than an index is read through for
  double idle_ms = 0, busy_ms = 0;              // processor time of node and PostgreSQL per minute
  double late_p50_ms = 0, late_p99_ms = 0, stats_ms = 0, resident_mb = 0;
};

double both_seconds(Subject& subject, pid_t server) {
  return subject.processor_seconds() + processor_seconds_of_all(server);
}

double per_minute_ms(double measured_s, int of_s) { return 1000 * measured_s * 60 / of_s; }

double stats_ms(Subject& subject) {
  std::vector<double> stats;
  for (int i = 0; i < 9; ++i) {
    const auto asked = std::chrono::steady_clock::now();
    subject.rest().get("/v1/stats");
    stats.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - asked).count());
  }
  std::ranges::sort(stats);
  return quantile(stats, 0.5);
}

// Of all types, sorted.
std::vector<double> lateness_of_all_ms(Subject& subject) {
  pqxx::nontransaction tx(subject.sql());
  std::vector<double> late;
  for (const auto& row : tx.exec("SELECT extract(epoch FROM started_at - action_time) * 1000 FROM tocsin.job"
                                 " WHERE status = 'done' ORDER BY 1"))
    late.push_back(row[0].as<double>());
  return late;
}

double idle_ms(Subject& subject, pid_t server, int window_s) {
  const WallTime idle = subject.db_now() + std::chrono::seconds(4);  // the types are known to the engine by then
  subject.wait_until(idle, "settling");
  const double before = both_seconds(subject, server);
  subject.wait_until(idle + std::chrono::seconds(window_s), "resting");
  return per_minute_ms(both_seconds(subject, server) - before, window_s);
}

// 64 far-off jobs of each type, over all shards.
void put_to_sleep(Bench& bench, Subject& subject, const std::deque<std::string>& names) {
  constexpr std::size_t kOfEach = 64;
  auto jobs = jobs_due_over(subject.db_now() + std::chrono::hours(24), std::chrono::hours(1), kOfEach * names.size(),
                            9500 + static_cast<std::uint64_t>(bench.round));
  for (std::size_t i = 0; i < jobs.size(); ++i) jobs[i].type = names[i % names.size()].c_str();
  subject.create(jobs);
  subject.settle();
}

// `deep`: far-off jobs of each type in the last part; 0: without it.
TypesOutcome run_types(Bench& bench, std::size_t n, std::vector<std::string> options = {}, std::size_t deep = 0) {
  using std::chrono::seconds;
  const int window_s = bench.sizes.types_s;
  const Database database(bench.server);
  Subject subject(database.url(), {bench.binary, R"({"kind":"noop"})", std::move(options)});
  std::deque<std::string> names{kType};
  for (std::size_t i = 1; i < n; ++i) {
    names.push_back("bench." + std::to_string(i));
    subject.put_type(names.back());
  }
  subject.settle();
  const pid_t server = server_of(subject.sql());
  TypesOutcome outcome;
  outcome.idle_ms = idle_ms(subject, server, window_s);

  const WallTime start = subject.db_now() + seconds(8);
  auto jobs = jobs_due_over(start, seconds(window_s), kRate * static_cast<std::size_t>(window_s),
                            9000 + static_cast<std::uint64_t>(bench.round));
  for (std::size_t i = 0; i < jobs.size(); ++i) jobs[i].type = names[i % names.size()].c_str();
  subject.create(jobs);
  subject.wait_until(start, "the first job");
  const double before = both_seconds(subject, server);
  subject.wait_until(start + seconds(window_s), "firing");
  outcome.busy_ms = per_minute_ms(both_seconds(subject, server) - before, window_s);
  subject.wait_until_finished(static_cast<std::int64_t>(jobs.size()), "the last jobs");

  const std::vector<double> late = lateness_of_all_ms(subject);
  outcome.late_p50_ms = quantile(late, 0.5);
  outcome.late_p99_ms = quantile(late, 0.99);
  outcome.stats_ms = stats_ms(subject);
  if (n > 1) {
    put_to_sleep(bench, subject, names);
    outcome.far_off_ms = idle_ms(subject, server, window_s);
    outcome.far_off_stats_ms = stats_ms(subject);
  }
  if (deep > 0) {
    write_pending(database.url(), deep * n, "statement_timestamp() + interval '1 day' + i % 3600 * interval '1 second'",
                  Indexes::kept, static_cast<int>(n));
    settle(database.url());
    outcome.many_far_off_ms = idle_ms(subject, server, window_s);
  }
  outcome.resident_mb = subject.resident_mb();
  return outcome;
}

}  // namespace

void measure_types(Bench& bench) {
  constexpr std::size_t kShards = 64, kOfEachLane = 40;
  const TypesOutcome one = run_types(bench, 1), many = run_types(bench, bench.sizes.types, {}, kOfEachLane * kShards);
  bench.results.add("types.one_idle", one.idle_ms);
  bench.results.add("types.one_busy", one.busy_ms);
  bench.results.add("types.one_late_p99", one.late_p99_ms);
  bench.results.add("types.many_idle", many.idle_ms);
  bench.results.add("types.many_busy", many.busy_ms);
  bench.results.add("types.many_late_p99", many.late_p99_ms);
  bench.results.add("types.stats", many.stats_ms);
  bench.results.add("types.far_off_idle", many.far_off_ms);
  bench.results.add("types.far_off_stats", many.far_off_stats_ms);
  bench.results.add("types.many_far_off_idle", many.many_far_off_ms);
  bench.results.add("types.resident", many.resident_mb);
}

void measure_many_lanes(Bench& bench) {
  const std::vector<std::string> shards{"--shards", std::to_string(bench.sizes.many_shards)};
  const TypesOutcome one = run_types(bench, 1, shards), many = run_types(bench, bench.sizes.types, shards);
  Results& results = bench.results;
  results.add("many_lanes.one_idle", one.idle_ms);
  results.add("many_lanes.idle", many.idle_ms);
  results.add("many_lanes.one_late_p50", one.late_p50_ms);
  results.add("many_lanes.one_late_p99", one.late_p99_ms);
  results.add("many_lanes.late_p50", many.late_p50_ms);
  results.add("many_lanes.late_p99", many.late_p99_ms);
  results.add("many_lanes.far_off_idle", many.far_off_ms);
  results.add("many_lanes.stats", many.far_off_stats_ms);
  results.add("many_lanes.resident", many.resident_mb);
}

void measure_pull_backlog(Bench& bench) {
  constexpr std::size_t kPullTypes = 20;
  Subject subject(bench.server, {bench.binary});
  std::deque<std::string> names;
  for (std::size_t i = 0; i < kPullTypes; ++i)
    subject.put_type(names.emplace_back("pull." + std::to_string(i)), R"({"kind":"pull"})");
  const pid_t server = server_of(subject.sql());
  subject.settle();
  const double idle = idle_ms(subject, server, bench.sizes.types_s);
  auto jobs = jobs_due_at(subject.db_now(), bench.sizes.pull_backlog);
  for (std::size_t i = 0; i < jobs.size(); ++i) jobs[i].type = names[i % names.size()].c_str();
  subject.create(jobs);
  subject.settle();
  subject.wait_until(subject.db_now() + std::chrono::seconds(15), "jobs leave the memory");
  bench.results.add("pull_backlog.idle", idle);
  bench.results.add("pull_backlog.backlog", idle_ms(subject, server, bench.sizes.types_s));
}

void measure_registry(Bench& bench) {
  using std::chrono::seconds;
  constexpr std::size_t kBusy = 100;  // types with jobs
  Subject subject(bench.server, {bench.binary});
  std::deque<std::string> names;
  const WallTime begin = subject.db_now();
  for (std::size_t i = 0; i < bench.sizes.registry_types; ++i)
    subject.put_type(names.emplace_back("type." + std::to_string(i)));
  const double put_s = std::chrono::duration<double>(subject.db_now() - begin).count();
  subject.settle();
  const pid_t server = server_of(subject.sql());
  Results& results = bench.results;
  results.add("registry.put", put_s * 1000 / static_cast<double>(names.size()));
  results.add("registry.idle", idle_ms(subject, server, bench.sizes.types_s));
  const WallTime start = subject.db_now() + seconds(6);
  auto jobs = jobs_due_over(start, seconds(10), 10 * kRate, 9100);
  for (std::size_t i = 0; i < jobs.size(); ++i) jobs[i].type = names[i % kBusy * (names.size() / kBusy)].c_str();
  subject.create(jobs);
  subject.wait_until(start + seconds(10), "firing");
  subject.wait_until_finished(static_cast<std::int64_t>(jobs.size()), "the last jobs");
  const std::vector<double> late = lateness_of_all_ms(subject);
  results.add("registry.late_p50", quantile(late, 0.5));
  results.add("registry.late_p99", quantile(late, 0.99));
  results.add("registry.stats", stats_ms(subject));
  results.add("registry.resident", subject.resident_mb());
}

}  // namespace tocsin::bench

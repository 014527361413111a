// What very many jobs of one instant do to one another, and to jobs of another type that are due meanwhile.
#include <algorithm>
#include <map>
#include <optional>

#include "bench/measurements.h"
#include "bench/subject.h"
#include "postgres/text.h"

namespace tocsin::bench {
namespace {

using std::chrono::seconds;

constexpr const char* kOther = "other";
constexpr int kTries = 3;

struct StormOutcome {
  std::vector<double> other_ms;  // lateness of the other type, sorted
  double p50() const { return quantile(other_ms, 0.5); }
  double p99() const { return quantile(other_ms, 0.99); }
};

// How many of each shard's jobs were done at the moment when so many parts of all were.
std::map<int, std::int64_t> done_at(Subject& subject, double part) {
  pqxx::nontransaction tx(subject.sql());
  const std::string done = "FROM tocsin.job WHERE status = 'done' AND biz_type = " + tx.quote(kType);
  std::map<int, std::int64_t> by_shard;
  for (const auto& row : tx.exec("WITH t AS MATERIALIZED (SELECT percentile_disc(" + std::to_string(part) +
                                 ") WITHIN GROUP (ORDER BY finished_at) AS moment " + done +
                                 ") SELECT shard, count(*) FILTER (WHERE finished_at <= (SELECT moment FROM t)) " +
                                 done + " GROUP BY shard"))
    by_shard[row[0].as<int>()] = row[1].as<std::int64_t>();
  return by_shard;
}

double spread(const std::map<int, std::int64_t>& by_shard) {
  const auto [least, most] = std::minmax_element(by_shard.begin(), by_shard.end(),
                                                 [](const auto& a, const auto& b) { return a.second < b.second; });
  return static_cast<double>(most->second) / static_cast<double>(std::max<std::int64_t>(least->second, 1));
}

void report_progress(Bench& bench, Subject& subject) {
  const auto quarter = done_at(subject, 0.25), half = done_at(subject, 0.5), most = done_at(subject, 0.75);
  bench.results.add("storm.spread_25", spread(quarter));
  bench.results.add("storm.spread_50", spread(half));
  bench.results.add("storm.spread_75", spread(most));
  for (const auto& [shard, jobs] : done_at(subject, 1))
    bench.results.add_point("storm", {{"round", bench.round},
                                      {"shard", shard},
                                      {"jobs", static_cast<double>(jobs)},
                                      {"done_25", static_cast<double>(quarter.at(shard))},
                                      {"done_50", static_cast<double>(half.at(shard))},
                                      {"done_75", static_cast<double>(most.at(shard))}});
}

// The other type's jobs are due over a second that begins one second after the storm does. nullopt: some were due
// before all were there.
std::optional<StormOutcome> weather(Bench& bench, std::size_t storm_jobs, seconds lead) {
  const std::size_t others = bench.sizes.storm_other_jobs;
  Subject subject(bench.server, {bench.binary});
  subject.put_type(kOther);
  const WallTime due = subject.db_now() + lead;
  subject.create(jobs_due_at(due, storm_jobs));
  subject.create(
      jobs_due_over(due + seconds(1), seconds(1), others, 4000 + static_cast<std::uint64_t>(bench.round), kOther));
  subject.settle();
  if (subject.db_now() > due) return std::nullopt;
  subject.wait_until(due + seconds(2), "waiting for the storm");
  subject.wait_until_finished(static_cast<std::int64_t>(storm_jobs + others), "the storm");
  StormOutcome outcome{subject.lateness_ms({}, kOther)};
  if (outcome.other_ms.size() != others || subject.lateness_ms().size() != storm_jobs)
    throw Failure("not all jobs fired, or some twice");
  if (storm_jobs == 0) return outcome;
  bench.results.add("storm.peak", subject.peak_mb());
  pqxx::nontransaction tx(subject.sql());
  const auto last = tx.exec1(
      "SELECT extract(epoch FROM max(finished_at) - min(action_time)) FROM tocsin.job"
      " WHERE status = 'done' AND biz_type = " +
      tx.quote(kType));
  tx.commit();
  bench.results.add("storm.rate", static_cast<double>(storm_jobs) / last[0].as<double>());
  report_progress(bench, subject);
  return outcome;
}

StormOutcome weather_in_time(Bench& bench, std::size_t storm_jobs) {
  seconds lead(8 + static_cast<int>(storm_jobs / 20'000));
  for (int i = 0; i < kTries; ++i, lead *= 2)
    if (const auto outcome = weather(bench, storm_jobs, lead)) return *outcome;
  throw Failure("the jobs cannot be created before they are due");
}

}  // namespace

void measure_storm(Bench& bench) {
  const StormOutcome quiet = weather_in_time(bench, 0), storm = weather_in_time(bench, bench.sizes.storm_jobs);
  bench.results.add("storm.quiet_p50", quiet.p50());
  bench.results.add("storm.quiet_p99", quiet.p99());
  bench.results.add("storm.other_p50", storm.p50());
  bench.results.add("storm.other_p99", storm.p99());
  bench.results.add("storm.p50_ratio", storm.p50() / quiet.p50());
  bench.results.add("storm.p99_ratio", storm.p99() / quiet.p99());
}

}  // namespace tocsin::bench

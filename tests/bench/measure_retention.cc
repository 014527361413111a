// What dropping old days costs those that are due meanwhile.
#include <algorithm>
#include <iostream>
#include <map>
#include <optional>

#include "bench/background_work.h"
#include "bench/preload.h"
#include "bench/stand.h"
#include "bench/workloads.h"

namespace tocsin::bench {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr milliseconds kLook(10);  // for days that are gone
constexpr seconds kSpread(50);     // of the jobs that fire meanwhile: a node drops two tables in so long
constexpr int kMostDrops = 2;
constexpr int kJobsPerSecond = 100;
constexpr milliseconds kLead(1000);  // all are created within
constexpr double kNear = 1;          // seconds: what is due so near to a drop may feel it

struct Day {
  std::string name;
  std::optional<WallTime> gone;
};

// When each table of a past day disappeared, by the database's clock.
class DayWatch {
 public:
  explicit DayWatch(const std::string& database) : connection_(database) {
    for (const auto& [name, now] : present())
      if (!name.empty()) days_.push_back({name, std::nullopt});
  }

  void look() {
    const auto there = present();
    for (Day& day : days_)
      if (!day.gone && !there.contains(day.name)) day.gone = there.at("");
  }

  std::vector<WallTime> gone() const {
    std::vector<WallTime> times;
    for (const Day& day : days_)
      if (day.gone) times.push_back(*day.gone);
    std::sort(times.begin(), times.end());
    return times;
  }

 private:
  // The tables, and under no name the time.
  std::map<std::string, WallTime> present() {
    pqxx::nontransaction tx(connection_);
    std::map<std::string, WallTime> tables;
    for (const auto& row :
         tx.exec("SELECT relname, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint FROM pg_class"
                 " WHERE relname ~ '^job_history_done_[0-9]{8}$' UNION ALL"
                 " SELECT '', (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"))
      tables[row[0].c_str()] = WallTime(Duration(row[1].as<std::int64_t>()));
    return tables;
  }

  pqxx::connection connection_;
  std::vector<Day> days_;
};

// Deadline and lateness in ms of the jobs finished since.
std::vector<std::pair<WallTime, double>> firings(Subject& subject, WallTime since) {
  pqxx::nontransaction tx(subject.sql());
  std::vector<std::pair<WallTime, double>> all;
  const std::string since_us = std::to_string(since.time_since_epoch().count());
  for (const auto& row : tx.exec("SELECT (extract(epoch FROM action_time) * 1000000)::bigint,"
                                 " extract(epoch FROM started_at - action_time) * 1000 FROM tocsin.job WHERE"
                                 " status = 'done' AND finished_at >= to_timestamp(" +
                                 since_us + " / 1000000.0)"))
    all.emplace_back(WallTime(Duration(row[0].as<std::int64_t>())), row[1].as<double>());
  return all;
}

// What came of a steady stream of jobs that began with the node. Seconds are counted from the first deadline.
struct Stream {
  std::vector<std::pair<double, double>> firings;  // when it was due in s, how late it was in ms
  std::vector<double> gone;                        // when each day that was dropped had disappeared

  // Sorted; of those only that are due near to one of these moments, if any are given.
  std::vector<double> lateness(const std::vector<double>& moments = {}) const {
    std::vector<double> late;
    for (const auto& [due, ms] : firings)
      if (moments.empty() ||
          std::ranges::any_of(moments, [due = due](double at) { return std::abs(due - at) <= kNear; }))
        late.push_back(ms);
    std::sort(late.begin(), late.end());
    return late;
  }
};

Stream stream(Bench& bench, Stand& stand, const std::string& days_kept) {
  DayWatch days(stand.url());
  Subject subject(stand.url(), {bench.binary, R"({"kind":"noop"})", retain(days_kept)});
  BackgroundWork watch(kLook, [&] { days.look(); });
  const WallTime asked = subject.db_now(), start = asked + kLead;
  fire_over(subject, static_cast<std::size_t>(kJobsPerSecond * kSpread.count()), kSpread, 6000, kLead);
  watch.stop();
  const auto second_of = [&](WallTime time) { return std::chrono::duration<double>(time - start).count(); };
  Stream result;
  for (const auto& [due, late] : firings(subject, asked)) result.firings.emplace_back(second_of(due), late);
  for (const WallTime gone : days.gone()) result.gone.push_back(second_of(gone));
  return result;
}

}  // namespace

// In each round the same stream twice, first without anything to drop.
void measure_retention(Bench& bench) {
  Stand stand(bench, retain(kAllDays));
  write_finished(stand.url(), bench.sizes.history_jobs, bench.sizes.history_days);
  settle(stand.url());
  const int days = bench.sizes.history_days - 1;  // yesterday stays
  for (int round = 1, dropped = 0; round <= bench.rounds; ++round) {
    const int drop = days * round / bench.rounds, expected = std::min(drop - std::exchange(dropped, drop), kMostDrops);
    if (expected == 0) continue;
    std::cerr << "  round " << round << '/' << bench.rounds << ", dropping old days\n";
    const Stream before = stream(bench, stand, kAllDays);
    const Stream during = stream(bench, stand, std::to_string(bench.sizes.history_days - drop));
    for (const double gone : during.gone)
      bench.results.add_point("retention_days", {{"round", static_cast<double>(round)}, {"gone_s", gone}});
    if (std::ssize(during.gone) < expected) throw Failure("retention did not drop all days in time");
    const auto late = during.lateness(), near = during.lateness(during.gone);
    bench.results.add("retention.dropped", static_cast<double>(during.gone.size()));
    bench.results.add("retention.p99", quantile(late, 0.99));
    bench.results.add("retention.ratio", quantile(late, 0.99) / quantile(before.lateness(), 0.99));
    bench.results.add("retention.near_p99", quantile(near, 0.99));
    bench.results.add("retention.worst", near.back());
  }
}

}  // namespace tocsin::bench

// What millions of finished jobs cost those that are due, created and cancelled; what it costs to report on them, and
// to drop the days that are too old.
#include <algorithm>
#include <iostream>
#include <map>
#include <optional>
#include <thread>
#include <tuple>

#include "bench/preload.h"
#include "bench/stand.h"
#include "bench/workloads.h"
#include "cli/pause.h"

namespace tocsin::bench {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using SteadyClock = std::chrono::steady_clock;

constexpr const char* kAll = "3650";
constexpr milliseconds kBetweenReports(50);
constexpr milliseconds kLook(10);    // for days that are gone
constexpr seconds kSpread(20);       // of the jobs that fire while days are dropped
constexpr int kJobsPerSecond = 200;  // of these; all are created within kLead
constexpr milliseconds kLead(300);   // retention begins a second after the node
constexpr double kNear = 1;          // seconds: what is due so near to a drop may feel it

// Options of a node that keeps history for so many days.
std::vector<std::string> retain(const std::string& days) {
  return {"--retain", "done=" + days + "d,cancelled=" + days + "d,dead=" + days + "d"};
}

// Does something again and again on a thread of its own until it is stopped.
class Beside {
 public:
  Beside(milliseconds pause, std::function<void()> work)
      : thread_([pause, work = std::move(work), this](const std::stop_token& stop) {
          try {
            for (; !stop.stop_requested(); pause_for(pause)) work();
          } catch (...) {
            failure_ = std::current_exception();
          }
        }) {}
  // Throws what stopped it.
  void stop() {
    thread_.request_stop();
    thread_.join();
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  std::exception_ptr failure_;
  std::jthread thread_;
};

// Reads every report in turn, and keeps how long each took in ms.
// Thread: owner only, which may change.
class Reports {
 public:
  Reports(int port, const std::string& database, std::size_t finished)
      : rest_(connection_to(port)), sql_(database), finished_(finished) {}

  void read_all() {
    const std::string biz_id = "history-" + std::to_string(1 + asked_++ * 7919 % finished_);
    time("stats", [&] { rest_.get("/v1/stats"); });
    time("list", [&] { rest_.get("/v1/jobs?status=done&limit=100"); });
    time("find", [&] { require(rest_.get("/v1/jobs?biz_id=" + biz_id).at("items").size()); });
    time("view", [&] { require(rows("SELECT * FROM tocsin.job_stats")); });
    time("biz", [&] { require(rows("SELECT * FROM tocsin.job WHERE biz_id = '" + biz_id + "'")); });
  }

  void report(Results& results) const {
    for (const auto& [name, ms] : ms_) {
      for (const double each : ms) results.add_point("history_reports", {{name + "_ms", each}});
      results.add("history.report_" + name, *std::max_element(ms.begin(), ms.end()));
    }
  }

 private:
  template <class Read>
  void time(const std::string& name, const Read& read) {
    const auto start = SteadyClock::now();
    read();
    ms_[name].push_back(std::chrono::duration<double, std::milli>(SteadyClock::now() - start).count());
  }
  std::size_t rows(const std::string& query) {
    return static_cast<std::size_t>(pqxx::nontransaction(sql_).exec(query).size());
  }
  static void require(std::size_t found) {
    if (found == 0) throw Failure("a report found nothing");
  }

  RestClient rest_;
  pqxx::connection sql_;
  const std::size_t finished_;
  std::size_t asked_ = 0;
  std::map<std::string, std::vector<double>> ms_;
};

// Lateness without and with somebody who reads all reports in turn.
void measure_reports(Bench& bench, Stand& stand) {
  const std::size_t n = bench.sizes.lateness_jobs / 3;
  const auto spread = seconds(bench.sizes.lateness_s) / 3;
  Subject subject(stand.url(), {bench.binary, R"({"kind":"noop"})", retain(kAll)});
  const double quiet = quantile(fire_over(subject, n, spread, 5001), 0.99);
  Reports reports(subject.port(), subject.database(), bench.sizes.history_jobs);
  reports.read_all();  // the first one plans
  Beside reader(kBetweenReports, [&] { reports.read_all(); });
  const double asked = quantile(fire_over(subject, n, spread, 5002), 0.99);
  reader.stop();
  reports.report(bench.results);
  bench.results.add("history.asked_ratio", asked / quiet);
}

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

  double p99(double from, double to) const {
    std::vector<double> late;
    for (const auto& [due, ms] : firings)
      if (due >= from && due <= to) late.push_back(ms);
    std::sort(late.begin(), late.end());
    return quantile(late, 0.99);
  }
};

Stream stream(Bench& bench, Stand& stand, const std::string& days_kept) {
  DayWatch days(stand.url());
  Subject subject(stand.url(), {bench.binary, R"({"kind":"noop"})", retain(days_kept)});
  Beside watch(kLook, [&] { days.look(); });
  const WallTime asked = subject.db_now(), start = asked + kLead;
  fire_over(subject, static_cast<std::size_t>(kJobsPerSecond * kSpread.count()), kSpread, 6000, kLead);
  watch.stop();
  const auto second_of = [&](WallTime time) { return std::chrono::duration<double>(time - start).count(); };
  Stream result;
  for (const auto& [due, late] : firings(subject, asked)) result.firings.emplace_back(second_of(due), late);
  for (const WallTime gone : days.gone()) result.gone.push_back(second_of(gone));
  return result;
}

// The same stream twice, first without anything to drop; compared are those due at the same seconds of it.
void measure_retention(Bench& bench, Stand& stand) {
  std::cerr << "  dropping old days\n";
  const Stream before = stream(bench, stand, kAll), during = stream(bench, stand, "1");
  if (during.gone.empty()) throw Failure("retention dropped nothing");
  for (const double gone : during.gone) bench.results.add_point("history_days", {{"gone_s", gone}});
  const double from = during.gone.front() - kNear, to = during.gone.back() + kNear;
  bench.results.add("history.dropped", static_cast<double>(during.gone.size()));
  bench.results.add("history.drop_s", during.gone.back() - during.gone.front());
  bench.results.add("history.drop_p99", during.p99(from, to));
  bench.results.add("history.drop_ratio", during.p99(from, to) / before.p99(from, to));
}

}  // namespace

void measure_history(Bench& bench) {
  const Sizes& sizes = bench.sizes;
  const auto rounds = static_cast<std::size_t>(bench.rounds);
  const PassSizes pass_sizes{.lateness_jobs = sizes.lateness_jobs / rounds,
                             .lateness_spread = std::chrono::seconds(sizes.lateness_s) / bench.rounds,
                             .drain_jobs = sizes.drain_jobs / 2,
                             .create_s = 0.4 * sizes.request_s,
                             .cancels = sizes.cancel_jobs};
  const std::vector<std::string> keep_all = retain(kAll);
  Stand empty(bench, keep_all), full(bench, keep_all);
  write_finished(full.url(), sizes.history_jobs, sizes.history_days);
  settle(full.url());

  std::vector<Pass> base, passes;
  for (std::size_t round = 0; round < rounds; ++round) {
    for (const auto& [stand, into, finished] :
         {std::tuple(&empty, &base, std::size_t{0}), std::tuple(&full, &passes, sizes.history_jobs)}) {
      std::cerr << "  pass " << round + 1 << '/' << rounds << ", " << finished << " finished\n";
      into->push_back(stand->run_pass(pass_sizes, 7000 + round));
      Point point = {{"round", static_cast<double>(round)}, {"history", static_cast<double>(finished)}};
      for (auto& value : into->back().point()) point.push_back(std::move(value));
      bench.results.add_point("history", std::move(point));
    }
  }
  compare(bench.results, "history", base, passes);
  measure_reports(bench, full);
  measure_retention(bench, full);
}

}  // namespace tocsin::bench

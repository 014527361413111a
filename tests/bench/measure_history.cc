// What millions of finished jobs cost those that are due, created and cancelled, and what it costs to report on them.
#include <algorithm>
#include <iostream>
#include <map>
#include <optional>
#include <thread>
#include <tuple>

#include "bench/background_work.h"
#include "bench/preload.h"
#include "bench/stand.h"
#include "bench/workloads.h"
#include "cli/pause.h"

namespace tocsin::bench {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using SteadyClock = std::chrono::steady_clock;

constexpr milliseconds kBetweenReports(50);

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

// Lateness without and with a client that reads all reports in turn.
void measure_reports(Bench& bench, Stand& stand) {
  const std::size_t n = bench.sizes.lateness_jobs / 3;
  const auto spread = seconds(bench.sizes.lateness_s) / 3;
  Subject subject(stand.url(), {bench.binary, R"({"kind":"noop"})", retain(kAllDays)});
  const double quiet = quantile(fire_over(subject, n, spread, 5001), 0.99);
  Reports reports(subject.port(), subject.database(), bench.sizes.history_jobs);
  reports.read_all();  // the first one plans
  BackgroundWork reader(kBetweenReports, [&] { reports.read_all(); });
  const double asked = quantile(fire_over(subject, n, spread, 5002), 0.99);
  reader.stop();
  reports.report(bench.results);
  bench.results.add("history.readers_ratio", asked / quiet);
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
  const std::vector<std::string> keep_all = retain(kAllDays);
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
}

}  // namespace tocsin::bench

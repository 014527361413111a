// What reports cost beside millions of jobs and a year of slots: their readers, and those who wait for their deadlines.
#include <algorithm>
#include <functional>
#include <iostream>
#include <map>

#include "base/progress.h"
#include "bench/background_work.h"
#include "bench/http_load.h"
#include "bench/measurements.h"
#include "bench/page_load.h"
#include "bench/preload.h"
#include "bench/report_reads.h"
#include "bench/report_year.h"
#include "bench/workloads.h"

namespace tocsin::bench {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using SteadyClock = std::chrono::steady_clock;

constexpr int kReads = 9;
constexpr seconds kRound(10);
constexpr std::size_t kJobsPerRound = 1'700;  // as many a second as in the measurement of lateness

// A session of PostgreSQL that computes without a pause, and reads nothing: what a reader in a loop costs at least.
constexpr const char* kComputation = "SELECT count(*) FROM generate_series(1, 500) a, generate_series(1, 500) b";
// As docs/reports.md has it for the readers' role.
constexpr const char* kReader = "SET jit = off; SET max_parallel_workers_per_gather = 0";

std::size_t read_sql(pqxx::connection& connection, const std::string& query) {
  return static_cast<std::size_t>(pqxx::nontransaction(connection).exec(query).size());
}

void measure_reads(Bench& bench, Subject& subject, const std::vector<ReportRead>& reads) {
  pqxx::connection sql(subject.database());
  pqxx::nontransaction(sql).exec(kReader);
  Progress progress("reading reports");
  std::int64_t done = 0;
  for (const ReportRead& read : reads) {
    progress.show(++done, static_cast<std::int64_t>(reads.size()), read.name);
    std::vector<double> ms;
    for (int i = 0; i < kReads; ++i) {
      const auto start = SteadyClock::now();
      read.is_rest ? static_cast<void>(subject.rest().get(read.text)) : static_cast<void>(read_sql(sql, read.text));
      ms.push_back(std::chrono::duration<double, std::milli>(SteadyClock::now() - start).count());
    }
    std::ranges::sort(ms);
    bench.results.add("reports." + read.name + ".p50", quantile(ms, 0.5));
    bench.results.add("reports." + read.name + ".max", ms.back());
  }
}

// Rounds of lateness: quiet, beside one who reads all views without a pause, beside one who reads one a second, beside
// one who computes without a pause, beside fifty pages; the order turns.
class Rounds {
 public:
  Rounds(Bench& bench, Subject& subject) : bench_(bench), subject_(subject), pages_(subject.rest()) {}

  void run() {
    struct Mode {
      const char* name;
      std::function<double(int)> p99;
    };
    const std::vector<Mode> modes = {{"quiet", [this](int seed) { return lateness(seed); }},
                                     {"views", [this](int seed) { return beside_views(seed, milliseconds(0)); }},
                                     {"paced", [this](int seed) { return beside_views(seed, milliseconds(1000)); }},
                                     {"burner", [this](int seed) { return beside_burner(seed); }},
                                     {"pages", [this](int seed) { return beside_pages(seed); }}};
    for (int round = 0; round < bench_.sizes.reader_rounds; ++round) {
      std::cerr << "readers, round " << round + 1 << '/' << bench_.sizes.reader_rounds << '\n';
      std::map<std::string, double> p99;
      const int n = static_cast<int>(modes.size());
      for (int i = 0; i < n; ++i) {
        const Mode& mode = modes[static_cast<std::size_t>((round + i) % n)];
        p99[mode.name] = mode.p99(round * n + i);
        bench_.results.add(std::string("readers.") + mode.name + "_p99", p99[mode.name]);
      }
      for (const Mode& mode : modes)
        if (&mode != &modes.front())
          bench_.results.add(std::string("readers.") + mode.name + "_ratio", p99[mode.name] / p99["quiet"]);
      bench_.results.add_point("readers", Point(p99.begin(), p99.end()));
    }
  }

 private:
  double lateness(int seed) {
    return quantile(fire_over(subject_, kJobsPerRound, kRound, 6000 + static_cast<std::uint64_t>(seed)), 0.99);
  }

  // All views one after the other, with a pause before each.
  double beside_views(int seed, milliseconds pause) {
    pqxx::connection sql(subject_.database());
    pqxx::nontransaction(sql).exec(kReader);
    std::vector<std::string> views;
    for (const ReportRead& read : usual_reads())
      if (!read.is_rest) views.push_back(read.text);
    std::size_t n = 0;
    const auto start = SteadyClock::now();
    BackgroundWork reader(pause, [&] { read_sql(sql, views[n++ % views.size()]); });
    const double p99 = lateness(seed);
    reader.stop();
    const std::chrono::duration<double> took = SteadyClock::now() - start;
    if (pause == milliseconds(0)) bench_.results.add("readers.views_reads", static_cast<double>(n) / took.count());
    return p99;
  }

  double beside_burner(int seed) {
    pqxx::connection sql(subject_.database());
    pqxx::nontransaction(sql).exec(kReader);
    BackgroundWork burner(milliseconds(0), [&] { read_sql(sql, kComputation); });
    const double p99 = lateness(seed);
    burner.stop();
    return p99;
  }

  double beside_pages(int seed) {
    const auto start = SteadyClock::now();
    pages_.start(subject_.port());
    const double p99 = lateness(seed);
    const std::int64_t n = pages_.stop();
    const std::chrono::duration<double> took = SteadyClock::now() - start;
    bench_.results.add("readers.pages_requests", static_cast<double>(n) / took.count());
    return p99;
  }

  Bench& bench_;
  Subject& subject_;
  PageLoad pages_;
};

}  // namespace

void measure_reports(Bench& bench) {
  const Database database(bench.server);
  const SubjectOptions options{bench.binary, R"({"kind":"noop"})", retain(kAllDays)};
  const int types = bench.sizes.report_types;
  {
    Subject first(database.url(), options);  // migrates
    for (int i = 1; i < types; ++i) first.put_type(std::string(kType) + "." + std::to_string(i));
    first.stop();
  }
  write_pending(database.url(), bench.sizes.report_jobs,
                "statement_timestamp() + interval '1 day' + i % 8640000 * interval '1 second'", Indexes::rebuilt,
                types);
  write_finished(database.url(), bench.sizes.report_jobs, bench.sizes.history_days, types);
  write_report_year(database.url());
  settle(database.url());
  for (const double ms : horizon_counts_ms(database.url())) {
    bench.results.add("reports.horizon_count", ms);
    bench.results.add("reports.horizon_count_max", ms);
  }
  Subject subject(database.url(), options);
  measure_reads(bench, subject, reads_without_kept_days());
  bench.results.add("reports.kept_in", keep_zone_days_of_a_day(database.url()));
  keep_days_of_read_zones(database.url());
  measure_reads(bench, subject, usual_reads());
  measure_reads(bench, subject, reads_of_a_year());
  Rounds(bench, subject).run();
}

}  // namespace tocsin::bench

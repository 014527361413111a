// What a snapshot held open does to a busy node: dead rows cannot be removed as long as it lasts.
#include <algorithm>
#include <iostream>
#include <memory>
#include <optional>

#include "base/progress.h"
#include "bench/measurements.h"
#include "bench/stage_times.h"
#include "bench/subject.h"
#include "cli/pause.h"
#include "postgres/text.h"

namespace tocsin::bench {
namespace {

using SteadyClock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int kAhead = 8;       // seconds from a create to its deadline: beyond what a node looks ahead
constexpr int kFineWindow = 5;  // seconds
constexpr int kTicks = 10;      // per second; jobs come in a stream, not in one burst a second
constexpr milliseconds kTick(1000 / kTicks);
constexpr double kRecovered = 1.2;

// As a report or a backup would.
class HeldSnapshot {
 public:
  explicit HeldSnapshot(const std::string& database) : connection_(database), tx_(connection_) {
    tx_.exec("SELECT count(*) FROM tocsin.biz_type");
  }

 private:
  pqxx::connection connection_;
  pqxx::transaction<pqxx::isolation_level::repeatable_read, pqxx::readwrite_policy::read_only> tx_;
};

// What the node and the tables say at the edge of a window.
struct Edge {
  StepHistogram scans;
  double dead_rows = 0;
};

Edge edge_of(Subject& subject) {
  pqxx::nontransaction tx(subject.sql());
  const auto dead = tx.exec1(
      "SELECT coalesce(sum(pg_stat_get_dead_tuples(relid)), 0) FROM pg_partition_tree('tocsin.job_live') WHERE isleaf");
  return {stage_times_of(subject.port())["scanner"], dead[0].as<double>()};
}

struct Window {
  double start_s = 0, jobs = 0, p50 = 0, p99 = 0, max = 0;
  Point point(int length) const {
    return {{"start_s", start_s},     {"seconds", length},      {"jobs", jobs},
            {"lateness_p50_ms", p50}, {"lateness_p99_ms", p99}, {"lateness_max_ms", max}};
  }
};

// Lateness by the deadline, in windows of so many seconds from `start`.
std::vector<Window> lateness_by_window(Subject& subject, WallTime start, int length) {
  const std::string at = "'" + to_pg(start) + "'::timestamptz", width = std::to_string(length);
  pqxx::nontransaction tx(subject.sql());
  const auto rows = tx.exec(
      "SELECT w, count(*), percentile_disc(0.5) WITHIN GROUP (ORDER BY ms),"
      " percentile_disc(0.99) WITHIN GROUP (ORDER BY ms), max(ms) FROM (SELECT"
      " floor(extract(epoch FROM action_time - " +
      at + ") / " + width +
      ") AS w,"
      " extract(epoch FROM started_at - action_time) * 1000 AS ms FROM tocsin.job"
      " WHERE status = 'done') j GROUP BY w ORDER BY w");
  std::vector<Window> windows;
  for (const auto& row : rows)
    windows.push_back({row[0].as<double>() * length, row[1].as<double>(), row[2].as<double>(), row[3].as<double>(),
                       row[4].as<double>()});
  return windows;
}

// A steady stream of jobs, and a snapshot that is held for a part of it.
class SnapshotStream {
 public:
  SnapshotStream(Bench& bench, Subject& subject)
      : sizes_(bench.sizes),
        subject_(subject),
        held_at_(round_up(sizes_.snapshot_before_s)),
        released_at_(held_at_ + round_up(sizes_.snapshot_s)),
        end_(released_at_ + round_up(sizes_.snapshot_after_s)) {}

  // The clock of the deadlines starts kAhead seconds after the first tick.
  void run() {
    Progress progress("holding a snapshot");
    start_ = subject_.db_now() + seconds(kAhead);
    const auto began = SteadyClock::now();
    std::optional<HeldSnapshot> snapshot;
    for (int tick = 0; tick <= (end_ + kAhead) * kTicks; ++tick) {
      const auto now = SteadyClock::now() - began;
      behind_ = std::max(behind_, now - tick * kTick);
      pause_for(std::chrono::duration_cast<milliseconds>(tick * kTick - now));
      if (tick < end_ * kTicks) create(tick);
      if (tick % kTicks != 0) continue;
      const int at = tick / kTicks - kAhead;
      progress.show(at + kAhead, end_ + kAhead,
                    at < held_at_       ? "s, before"
                    : at < released_at_ ? "s, held"
                                        : "s, released");
      if (at == held_at_) snapshot.emplace(subject_.database());
      if (at == released_at_) snapshot.reset();
      if (at >= 0 && at % sizes_.snapshot_window_s == 0) edges_.push_back(edge_of(subject_));
    }
    subject_.wait_until_finished(created_, "the last of them");
    if (behind_ > seconds(kAhead)) std::cerr << "note: some jobs were due before they were created\n";
  }

  WallTime start() const { return start_; }
  int held_at() const { return held_at_; }
  int released_at() const { return released_at_; }
  int phase_at(double second) const { return second < held_at_ ? 0 : second < released_at_ ? 1 : 2; }
  std::int64_t created() const { return created_; }
  const std::vector<Edge>& edges() const { return edges_; }

 private:
  int round_up(int s) const {
    return (s + sizes_.snapshot_window_s - 1) / sizes_.snapshot_window_s * sizes_.snapshot_window_s;
  }

  void create(int tick) {
    auto jobs =
        jobs_due_over(start_ + tick * kTick, kTick, sizes_.snapshot_rate / kTicks, static_cast<std::uint64_t>(tick));
    for (BenchJob& job : jobs) job.number += created_;
    created_ += subject_.create(jobs).answered;
  }

  const Sizes& sizes_;
  Subject& subject_;
  const int held_at_, released_at_, end_;  // seconds on the clock of the deadlines
  WallTime start_{};
  std::int64_t created_ = 0;
  SteadyClock::duration behind_{0};
  std::vector<Edge> edges_;
};

// Seconds from the release until a window was as good as those before the snapshot; all there are when none was.
double recovery(const std::vector<Window>& fine, const SnapshotStream& stream, double baseline_p99) {
  double last = 0;
  for (const Window& window : fine) {
    if (window.start_s < stream.released_at()) continue;
    last = window.start_s + kFineWindow - stream.released_at();
    if (window.p99 <= kRecovered * baseline_p99) return last - kFineWindow;
  }
  std::cerr << "note: it did not recover within " << last << " s\n";
  return last;
}

}  // namespace

void measure_snapshot(Bench& bench) {
  Subject subject(bench.server, {bench.binary});
  SnapshotStream stream(bench, subject);
  stream.run();

  const int length = bench.sizes.snapshot_window_s;
  const std::vector<Window> windows = lateness_by_window(subject, stream.start(), length);
  double jobs = 0;
  std::vector<double> p99_before, scan_before;
  double scan_worst = 0, end_p99 = 0;
  std::optional<std::size_t> held_from, held_to;
  for (std::size_t i = 0; i < windows.size() && i + 1 < stream.edges().size(); ++i) {
    const Window& window = windows[i];
    const StepHistogram scans = stream.edges()[i + 1].scans.since(stream.edges()[i].scans);
    const double scan_p99 = 1000 * scans.quantile(0.99);
    const int phase = stream.phase_at(window.start_s);
    Point point = window.point(length);
    point.insert(point.end(), {{"phase", phase},
                               {"scan_p99_ms", scan_p99},
                               {"scan_mean_ms", scans.steps > 0 ? 1000 * scans.seconds / scans.steps : 0},
                               {"scans", scans.steps},
                               {"dead_rows", stream.edges()[i + 1].dead_rows}});
    bench.results.add_point("snapshot", std::move(point));
    jobs += window.jobs;
    if (phase == 0) {
      p99_before.push_back(window.p99);
      scan_before.push_back(scan_p99);
    } else if (phase == 1) {
      if (!held_from) held_from = i;
      held_to = i + 1;
      scan_worst = std::max(scan_worst, scan_p99);
      end_p99 = window.p99;
    }
  }
  if (static_cast<std::int64_t>(jobs) != stream.created())
    throw Failure(std::to_string(static_cast<std::int64_t>(jobs)) + " of " + std::to_string(stream.created()) +
                  " jobs fired");
  const std::vector<Window> fine = lateness_by_window(subject, stream.start(), kFineWindow);
  for (const Window& window : fine) bench.results.add_point("snapshot_fine", window.point(kFineWindow));
  bench.results.add_point("snapshot_held", {{"from_s", stream.held_at()}, {"to_s", stream.released_at()}});

  const double baseline = median(p99_before);
  bench.results.add("snapshot.baseline_p99", baseline);
  bench.results.add("snapshot.end_p99", end_p99);
  bench.results.add("snapshot.end_ratio", end_p99 / baseline);
  bench.results.add("snapshot.scan_baseline_p99", median(scan_before));
  if (held_from) {
    const StepHistogram held = stream.edges()[*held_to].scans.since(stream.edges()[*held_from].scans);
    bench.results.add("snapshot.scan_p99", 1000 * held.quantile(0.99));
  }
  bench.results.add("snapshot.scan_worst", scan_worst);
  bench.results.add("snapshot.recovered", recovery(fine, stream, baseline));
}

}  // namespace tocsin::bench

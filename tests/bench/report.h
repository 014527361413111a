// The figures as a human-readable table, as Markdown, and as JSON Lines.
//
// For programs they are JSON Lines: one object per line, told apart by "record":
//
//   run       first line: machine (an object of texts), rounds, quick
//   figure    name, unit, value (of all rounds), rounds (the values themselves, oldest first)
//   point     series, and what was observed at one point, all numbers:
//
// series "depth", one per round and depth: round (0..), depth (jobs waiting), lateness_p50_ms, lateness_p99_ms,
// create_per_s, create_p99_ms, cancel_per_s, cancel_p99_ms.
// series "history", the same with `history` (finished jobs) in place of depth, and drain_per_s.
// series "snapshot", one per window: start_s (of the window, from the first deadline), seconds (its length), phase
// (0 before, 1 snapshot held, 2 released), jobs, lateness_p50_ms, lateness_p99_ms, lateness_max_ms, scan_p99_ms,
// scan_mean_ms, scans, dead_rows (of the live tables at its end, as the statistics know them).
// series "snapshot_fine": the same lateness in windows of 5 s: start_s, seconds, jobs, lateness_p50_ms,
// lateness_p99_ms, lateness_max_ms.
// series "snapshot_held": from_s, to_s: when the snapshot was taken and released.
// series "storm", one per round and shard: round, shard, jobs, done_25, done_50, done_75: how many of the shard's were
// done when so many percent of all were.
// series "history_reports", one per report read: stats_ms, list_ms, find_ms, view_ms or biz_ms.
// series "retention_days", one per day dropped: round, gone_s (from the first deadline of the lateness measured then).
// series "stage", one per round, kind (0 noop, 1 claimed) and stage: round, kind, stage (0 scanner, 1 timekeeper,
// 2 claimer, 3 runner, 4 finisher), steps, seconds.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "bench/figures.h"
#include "bench/machine.h"

namespace tocsin::bench {

struct Report {
  const Machine& machine;
  const std::vector<Section>& sections;
  const Results& results;
  int rounds = 0;
  bool is_quick = false;
};

// Sections and figures that were not measured are left out of the first two.
void print_table(std::ostream& out, const Report& report);
void print_markdown(std::ostream& out, const Report& report);
// Every value of every round, as above. Throws Failure when the file cannot be written.
void write_json(const std::string& path, const Report& report);

}  // namespace tocsin::bench

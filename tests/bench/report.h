// Writes the figures as a table for terminals, as Markdown, and as JSON Lines.
//
// JSON Lines: one object per line; "record" says which kind it is:
//
//   run       first line: machine (an object of texts), rounds, nodes, quick
//   figure    name, unit, value (of all rounds), rounds (the values of each, oldest first)
//   point     series, and the values at one point, all numbers:
//
// series "depth", one per round and depth: round (from 0), depth (jobs waiting), lateness_p50_ms, lateness_p99_ms,
// create_per_s, create_p99_ms, cancel_per_s, cancel_p99_ms.
// series "history", the same with `history` (finished jobs) in place of depth, and drain_per_s.
// series "snapshot", one per window: start_s (from the first deadline to the window), seconds (length of the window),
// phase (0 before, 1 while, 2 after another transaction holds a snapshot), jobs, lateness_p50_ms, lateness_p99_ms,
// lateness_max_ms, scan_p99_ms, scan_mean_ms, scans, dead_rows (of the live tables at the end of the window, by the
// statistics).
// series "snapshot_fine", windows of 5 s: start_s, seconds, jobs, lateness_p50_ms, lateness_p99_ms, lateness_max_ms.
// series "snapshot_held": from_s, to_s: when the snapshot was taken and released.
// series "storm", one per round and shard: round, shard, jobs, done_25, done_50, done_75 (jobs of the shard that were
// done when 25, 50, 75 percent of all jobs were).
// series "history_reports", one per report read: stats_ms, list_ms, find_ms, view_ms or biz_ms.
// series "retention_days", one per day dropped: round, gone_s (from the first deadline of the lateness measured then).
// series "stage", one per round, kind (0 noop, 1 claimed) and stage: round, kind, stage (0 scanner, 1 timekeeper, 2
// claimer, 3 runner, 4 finisher), steps, seconds.
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
  int nodes = 1;  // that shared a database
  bool is_quick = false;
};

// Both leave out sections and figures that were not measured.
void print_table(std::ostream& out, const Report& report);
void print_markdown(std::ostream& out, const Report& report);
// Writes every value of every round, as described above. Throws Failure if the file cannot be written.
void write_json(const std::string& path, const Report& report);

}  // namespace tocsin::bench

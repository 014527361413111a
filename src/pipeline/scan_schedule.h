// ScanSchedule: tells the scanner when the next scan comes and which of the node's shards it reads. Owned by the
// Scanner.
//
// A cycle reads every shard once per scan interval:
//  - Normally a cycle is one scan of all shards.
//  - After a cycle that read many rows it is four scans of a quarter of the shards each (scan groups), so that no
//    statement takes long.
//  - After a cycle whose rows did not fit into memory or into one page it is one scan, so that the lanes of all shards
//    (a lane: the jobs of one type in one shard) get their part of the memory.
// While the node is idle, a cycle takes two scan intervals.
//
// Thread: owner only (the scanner's). Reads no clock.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>

#include "tocsin/clock.h"

namespace tocsin {

class ScanSchedule {
 public:
  // `interval`: the scan interval. `many_rows`: a cycle that reads this many rows is followed by one in scan groups.
  ScanSchedule(Duration interval, std::size_t many_rows) : interval_(interval), many_rows_(many_rows) {}

  // The current scan is the next one or the one that runs; end_scan() makes the scan after it the current one.
  //
  // Whether the current scan reads the shard at this position in the node's sorted list of shards.
  bool is_turn_of(std::size_t position) const { return position % groups_ == group_; }
  bool is_cycle_begin() const { return group_ == 0; }   // the current scan is the first of its cycle
  bool is_in_groups() const { return groups_ > 1; }     // its cycle has four scans
  std::size_t intervals() const { return intervals_; }  // scan intervals of all cycles that have ended

  void note_rows(std::size_t n) { rows_ += n; }  // the current scan has read `n` rows
  // Rows did not fit into memory or into one page: the next cycle reads all shards in one scan.
  void note_overfull() { is_overfull_ = true; }
  bool is_overfull() const { return is_overfull_; }  // note_overfull() was called in this cycle
  // Abandons the cycle and begins a new one of a single scan: the current scan reads all shards.
  void begin_whole_cycle() {
    groups_ = 1;
    group_ = 0;
  }

  // Ends the current scan. Returns how long until the next one, so that no shard waits longer than the interval: the
  // interval, or a quarter of it if this or the next scan is a scan group. `may_idle`: every new job would be hinted or
  // notified. Then two intervals follow a scan of all shards that read no rows.
  Duration end_scan(bool may_idle) {
    const std::size_t before = groups_;
    std::size_t intervals = 1;
    if (++group_ == groups_) {
      const std::size_t rows = std::exchange(rows_, 0);
      const bool is_whole = std::exchange(is_overfull_, false) || rows < many_rows_;
      groups_ = is_whole ? 1 : kGroups;
      group_ = 0;
      if (may_idle && rows == 0 && before == 1) intervals = kIdleIntervals;
      intervals_ += intervals;
    }
    return interval_ * static_cast<Duration::rep>(intervals) / static_cast<Duration::rep>(std::max(before, groups_));
  }

 private:
  static constexpr std::size_t kGroups = 4;         // with 64 shards and 2,000 jobs/s one scan takes a few ms
  static constexpr std::size_t kIdleIntervals = 2;  // less than half of the lookahead: jobs are still read in time
  const Duration interval_;
  const std::size_t many_rows_;
  std::size_t groups_ = 1, group_ = 0;  // scans of this cycle; index of the current one
  std::size_t rows_ = 0;                // read in this cycle
  std::size_t intervals_ = 0;
  bool is_overfull_ = false;
};

}  // namespace tocsin

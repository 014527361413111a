// ScanSchedule: tells the scanner when the next scan comes and which of the node's shards it reads.
//
// A cycle reads every shard once: in one scan, or, after a cycle that read many rows, in four (scan groups, a quarter
// of the shards each), so that no statement takes long. A shard is read once per scan interval. A cycle whose rows did
// not fit into memory, or into one page, is followed by one of a single scan, so that the lanes of all shards get their
// part of the memory. While the node is idle, a cycle takes two intervals.
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
  // `interval`: the scan interval. `many_rows`: a cycle that reads so many is followed by one in scan groups.
  ScanSchedule(Duration interval, std::size_t many_rows) : interval_(interval), many_rows_(many_rows) {}

  // The current scan is the one that comes next or runs; end_scan() goes to the one after it.
  //
  // Whether the current scan reads the shard at this position in the node's sorted list of shards.
  bool is_turn_of(std::size_t position) const { return position % groups_ == group_; }
  bool is_cycle_begin() const { return group_ == 0; }   // the current scan is the first of its cycle
  bool is_in_groups() const { return groups_ > 1; }     // its cycle has four scans
  std::size_t intervals() const { return intervals_; }  // scan intervals of all cycles that have ended

  void note_rows(std::size_t n) { rows_ += n; }  // the current scan has read so many
  // Rows did not fit into memory or into one page: the next cycle reads all shards in one scan.
  void note_overfull() { is_overfull_ = true; }
  bool is_overfull() const { return is_overfull_; }  // noted in this cycle
  // Drops what is left of the cycle: the current scan reads all shards.
  void begin_whole_cycle() {
    groups_ = 1;
    group_ = 0;
  }

  // Ends the current scan. Returns how long until the next one: no shard waits longer than the interval, so the first
  // group after a whole scan comes a quarter of the interval later, and so does a whole scan after the last group.
  // `may_idle`: every new job would be hinted or notified, so after a scan of all shards that read no rows the next one
  // comes two intervals later.
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
  static constexpr std::size_t kGroups = 4;         // with 64 shards and 2,000 jobs/s a scan takes a few ms
  static constexpr std::size_t kIdleIntervals = 2;  // less than half of the lookahead: jobs are still read in time
  const Duration interval_;
  const std::size_t many_rows_;
  std::size_t groups_ = 1, group_ = 0;  // scans of this cycle; index of the current one
  std::size_t rows_ = 0;                // read in this cycle
  std::size_t intervals_ = 0;
  bool is_overfull_ = false;
};

}  // namespace tocsin

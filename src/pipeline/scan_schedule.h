// ScanSchedule: when the next scan comes, and which shards it reads.
//
// A cycle reads every shard once and takes one scan interval: in one scan, or in four (scan groups) after a cycle that
// read many rows, so that no statement takes long. A cycle whose rows did not fit into memory, or into one page, is
// followed by a whole one, in which all lanes get their part. If nothing is found and every new job would be hinted or
// notified, a cycle takes two intervals (the idle interval). Sweeps and audits are spread over intervals by
// ShardRotation.
//
// Thread: owner only (the scanner's). Reads no clock.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>

#include "tocsin/clock.h"
#include "tocsin/shard.h"

namespace tocsin {

// Spreads a task over a period: it divides the shards into period / interval turns, one turn per interval.
class ShardRotation {
 public:
  ShardRotation(Duration period, Duration interval)
      : turns_(static_cast<std::size_t>(std::max<Duration::rep>(1, period / interval))) {}
  // Goes to the next turn if it is due. `intervals`: that have passed so far. False: every due turn was taken.
  bool next(std::size_t intervals) {
    if (done_ >= intervals) return false;
    turn_ = ++done_ % turns_;
    return true;
  }
  bool is_turn_of(Shard shard) const { return static_cast<std::size_t>(shard) % turns_ == turn_; }

 private:
  const std::size_t turns_;
  std::size_t done_ = 0, turn_ = 0;
};

class ScanSchedule {
 public:
  ScanSchedule(Duration interval, std::size_t many_rows) : interval_(interval), many_rows_(many_rows) {}

  // Whether this scan reads the shard at this position among those of the node.
  bool is_turn_of(std::size_t position) const { return position % groups_ == group_; }
  bool is_cycle_begin() const { return group_ == 0; }
  bool is_in_groups() const { return groups_ > 1; }
  std::size_t intervals() const { return intervals_; }  // that have passed, in complete cycles

  void note_rows(std::size_t n) { rows_ += n; }
  // Rows did not fit into memory or into one page: the next cycle reads all shards in one scan.
  void note_overfull() { is_overfull_ = true; }
  bool is_overfull() const { return is_overfull_; }
  // The next scan reads all shards.
  void begin_whole_cycle() {
    groups_ = 1;
    group_ = 0;
  }

  // Ends a scan. `may_idle`: a cycle without rows may be followed by an idle interval. Returns how long until the next
  // scan: no shard waits longer than the interval, so the first group after a whole scan comes a quarter of the
  // interval later, and so does a whole scan after the last group.
  Duration end_turn(bool may_idle) {
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
  static constexpr std::size_t kGroups = 4;         // of 64 shards at 2,000 jobs/s each takes a few ms
  static constexpr std::size_t kIdleIntervals = 2;  // what enters the window then still has half of the lookahead
  const Duration interval_;
  const std::size_t many_rows_;
  std::size_t groups_ = 1, group_ = 0;  // of this cycle; whose turn it is
  std::size_t rows_ = 0;                // read in this cycle
  std::size_t intervals_ = 0;
  bool is_overfull_ = false;
};

}  // namespace tocsin

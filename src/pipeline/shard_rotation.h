// ShardRotation: tells the scanner for which shards (slices of all jobs) a sweep or an audit begins. These reread rows
// of a lane that scans have passed. The Scanner owns one rotation for sweeps and one for audits. A rotation spreads the
// work over a period: the shards, by number, are divided into period / interval turns, one turn per scan interval. So
// each shard has one turn per period, and no single scan does all the work.
//
// Thread: owner only (the scanner's). Reads no clock.
#pragma once

#include <algorithm>
#include <cstddef>

#include "tocsin/clock.h"
#include "tocsin/shard.h"

namespace tocsin {

class ShardRotation {
 public:
  ShardRotation(Duration period, Duration interval)
      : turns_(static_cast<std::size_t>(std::max<Duration::rep>(1, period / interval))) {}
  // Goes to the next turn if it is due. `intervals`: scan intervals that have passed (ScanSchedule::intervals()).
  // False: no turn is due. The caller repeats the call until then, because several turns are due after an idle cycle.
  bool next(std::size_t intervals) {
    if (done_ >= intervals) return false;
    turn_ = ++done_ % turns_;
    return true;
  }
  // Whether the shard belongs to the turn that next() went to.
  bool is_turn_of(Shard shard) const { return static_cast<std::size_t>(shard) % turns_ == turn_; }

 private:
  const std::size_t turns_;
  std::size_t done_ = 0, turn_ = 0;
};

}  // namespace tocsin

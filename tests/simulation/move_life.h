// run_move_life(): simulates one life of an installation whose shards move. It runs the real ShardMover and the real
// end of a freeze (move_watch.h) on databases in memory whose replication lags. Callers and handlers use the shards all
// the time. Commands are killed at any point, and calls fail or lose their answers, as the seed decides.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tocsin {

struct MoveLifeReport {
  std::vector<std::string> failures;  // broken promises; empty: none
  std::size_t jobs = 0, switched = 0, rolled_back = 0, killed = 0, rescued = 0;
  std::uint64_t faults = 0;
};

MoveLifeReport run_move_life(std::uint64_t seed, bool is_printed = false);

}  // namespace tocsin

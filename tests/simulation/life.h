// run_life(): simulates one life of a cluster (nodes, databases, callers, faults) and checks Tocsin's promises. The
// seed decides everything in it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "simulation/sim_node.h"

namespace tocsin {

struct LifeOptions {
  FakeBugs bugs;                   // planted in every database
  FakeFunctionBugs function_bugs;  // and in its SQL functions
  bool is_printed = false;         // prints the trace
  // A standby that takes over may lack commits that were acknowledged. False: such a loss is a failure.
  bool may_lose = true;
};

struct LifeReport {
  std::vector<std::string> failures;  // empty: every promise was kept
  std::uint64_t trace_hash = 0;
  std::uint64_t events = 0;
  std::uint64_t faults = 0;
  std::size_t jobs = 0;
  std::size_t starts = 0;
  Losses losses;
  Counters counters{};
};

LifeReport run_life(std::uint64_t seed, const LifeOptions& options = {});

}  // namespace tocsin

// One simulated life of a cluster: everything in it follows from one seed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "simulation/sim_node.h"

namespace tocsin {

struct WorldOptions {
  FakeBugs bugs;
  bool is_printed = false;
};

struct WorldReport {
  std::vector<std::string> failures;  // empty: every promise was kept
  std::uint64_t trace_hash = 0;
  std::uint64_t events = 0;
  std::uint64_t faults = 0;
  std::size_t jobs = 0;
  std::size_t starts = 0;
  Counters counters{};
};

WorldReport run_world(std::uint64_t seed, const WorldOptions& options = {});

}  // namespace tocsin

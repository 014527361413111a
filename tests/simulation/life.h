// One simulated life of a cluster: everything in it follows from one seed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "simulation/sim_node.h"

namespace tocsin {

struct LifeOptions {
  FakeBugs bugs;
  bool is_printed = false;
  // A standby that takes over may lack what was acknowledged; otherwise its loss is a broken promise.
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

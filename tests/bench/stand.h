// A database in a certain state, on which a node is started again and again: what is measured there is compared with
// what is measured on an empty one, in turns.
#pragma once

#include <string>
#include <vector>

#include "bench/measurements.h"
#include "bench/postgres_server.h"
#include "bench/subject.h"

namespace tocsin::bench {

struct PassSizes {
  std::size_t lateness_jobs = 0;
  Duration lateness_spread{};
  std::size_t drain_jobs = 0;  // 0: not measured
  double create_s = 0;
  std::size_t cancels = 0;  // at most; of jobs that were just created
};

struct Pass {
  std::vector<double> lateness_ms;  // sorted
  double drain = 0, create = 0, create_p99 = 0, cancel = 0, cancel_p99 = 0;

  // As a point of a series; the drain when it was measured.
  Point point() const;
};

// Thread: owner only, the main thread.
class Stand {
 public:
  // Migrated, the type known, and no node running.
  Stand(Bench& bench, std::vector<std::string> options_of_the_node);

  const std::string& url() const { return database_.url(); }

  // One node from start to end; afterwards as many jobs are pending as before.
  Pass run_pass(const PassSizes& sizes, std::uint64_t seed);

 private:
  void remove_jobs_after(const std::string& sequence);

  Database database_;
  const SubjectOptions options_;
};

// The lateness of all passes together, sorted.
std::vector<double> pooled_lateness(const std::vector<Pass>& passes);

// Adds the figures `prefix`.lateness_p99, .create, ..., and what they are in relation to `base`, round by round.
void compare(Results& results, const std::string& prefix, const std::vector<Pass>& base,
             const std::vector<Pass>& passes);

}  // namespace tocsin::bench

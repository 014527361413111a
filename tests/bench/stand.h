// Stand: a database in a certain state, such as one with ten million waiting jobs. The bench starts a node on it again
// and again, in turn with a node on an empty database, and compares the figures.
#pragma once

#include <string>
#include <vector>

#include "bench/measurements.h"
#include "bench/postgres_server.h"
#include "bench/subject.h"

namespace tocsin::bench {

// How much one pass measures.
struct PassSizes {
  std::size_t lateness_jobs = 0;
  Duration lateness_spread{};
  std::size_t drain_jobs = 0;  // 0: not measured
  double create_s = 0;
  std::size_t cancels = 0;  // at most; jobs that the pass has just created
};

// The figures of one pass. Rates per second, p99 in milliseconds.
struct Pass {
  std::vector<double> lateness_ms;  // sorted
  double drain = 0, create = 0, create_p99 = 0, cancel = 0, cancel_p99 = 0;

  // As a point of a series; `drain` only if it was measured.
  Point point() const;
};

// Thread: owner only, the main thread.
class Stand {
 public:
  // Creates the database with schema and type; no node runs.
  Stand(Bench& bench, std::vector<std::string> options_of_the_node);

  const std::string& url() const { return database_.url(); }

  // Starts a node, measures, and stops the node. As many jobs are pending afterwards as before. `seed`: of the due
  // times.
  Pass run_pass(const PassSizes& sizes, std::uint64_t seed);

 private:
  void remove_jobs_after(const std::string& sequence);

  Database database_;
  const SubjectOptions options_;
};

// The lateness of all passes, sorted, in milliseconds.
std::vector<double> pooled_lateness(const std::vector<Pass>& passes);

// Adds the figures `prefix`.lateness_p99, `prefix`.create and so on, and their ratios to the figures of `base`, round
// by round.
void compare(Results& results, const std::string& prefix, const std::vector<Pass>& base,
             const std::vector<Pass>& passes);

}  // namespace tocsin::bench

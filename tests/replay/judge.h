// Compares what fired with what had to.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "replay/plan.h"
#include "replay/receiver.h"

namespace tocsin::replay {

// Sorted milliseconds.
struct Spread {
  std::vector<double> ms;
  double quantile(double q) const {
    return ms.empty() ? 0 : ms[static_cast<std::size_t>(q * static_cast<double>(ms.size() - 1))];
  }
};

struct Judgement {
  std::map<std::string, std::vector<std::string>> violations;  // what is wrong -> ids of requests
  std::map<std::string, std::int64_t> counts;
  Spread lateness;    // of first deliveries, where the creation was acknowledged before the job was due
  Spread create_lag;  // from when a request opened to the answer about its job
  Spread cancel_lag;  // from when a request closed to the answer about its cancel
  bool is_clean() const { return violations.empty(); }
};

// `cut` is where the replay ended: what the records say after it did not happen.
Judgement judge(const std::vector<Job>& jobs, const std::vector<Delivery>& deliveries, DataTime cut);

}  // namespace tocsin::replay

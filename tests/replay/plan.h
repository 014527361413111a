// When everything happens in a replay: recorded times on a faster clock that starts soon.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "replay/data.h"

namespace tocsin::replay {

// Milliseconds, as jobs carry them over REST: what is compared is what was asked for.
using WallTime = std::chrono::sys_time<std::chrono::milliseconds>;

enum class CancelAnswer { none, cancelled, running, finished, not_found };

// One request of the records, and what the node said about its job.
struct Job {
  Request request;
  std::string biz_type;
  WallTime opens, due;
  std::optional<WallTime> closes;  // nullopt: not within the replay

  std::int64_t job_id = 0;  // 0: not created yet
  WallTime created{};       // when the answer came
  bool wants_cancel = false;
  CancelAnswer answer = CancelAnswer::none;
  WallTime answered{};
};

// Maps recorded time onto the wall clock: `start` is when the first request opens.
class FastClock {
 public:
  FastClock(DataTime first, double days_per_second, WallTime start)
      : first_(first), speed_(days_per_second * 86'400), start_(start) {}
  WallTime at(DataTime time) const {
    const double ms = 1000 * static_cast<double>(time - first_) / speed_;
    return start_ + std::chrono::milliseconds(static_cast<std::int64_t>(ms));
  }

 private:
  DataTime first_;
  double speed_;
  WallTime start_;
};

// The jobs of all requests opened before `cut`, in the order they open.
std::vector<Job> make_plan(std::vector<Request> requests, const FastClock& clock, DataTime cut);

}  // namespace tocsin::replay

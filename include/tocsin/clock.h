// Two kinds of time that never convert into each other by accident.
#pragma once

#include <chrono>

namespace tocsin {

using Duration = std::chrono::microseconds;

// A clock that only ever moves forward; used for every wait and every lease. Its zero means nothing.
struct MonoClock {
  using duration = Duration;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<MonoClock, Duration>;
  static constexpr bool is_steady = true;
};
using MonoTime = MonoClock::time_point;

// The database's wall clock, microseconds since 1970-01-01 UTC; used for rows and for display.
using WallTime = std::chrono::sys_time<Duration>;

// Reads the local monotonic clock. The one implementation that touches the machine is SystemClock (src/node).
// Thread: any.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual MonoTime now() const = 0;
};

}  // namespace tocsin

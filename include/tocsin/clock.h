// Two kinds of time, as types that do not convert into each other: MonoTime for waits and leases, WallTime for rows.
#pragma once

#include <chrono>

namespace tocsin {

using Duration = std::chrono::microseconds;

// The local monotonic clock: never goes back; used for every wait and every lease. Its zero is arbitrary.
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

// Reads the local monotonic clock. SystemClock reads the machine's; tests and the simulator have their own.
// Thread: any.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual MonoTime now() const = 0;
};

}  // namespace tocsin

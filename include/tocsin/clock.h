// Two kinds of time, as types that do not convert into each other: MonoTime, of this process, for waits and leases;
// WallTime, of the database, for rows.
#pragma once

#include <chrono>

namespace tocsin {

using Duration = std::chrono::microseconds;

// The local monotonic clock: never goes back; used for every wait and every lease. Its zero is arbitrary, so times of
// two processes must not be compared. It has no now(): the time comes from a Clock.
struct MonoClock {
  using duration = Duration;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<MonoClock, Duration>;
  static constexpr bool is_steady = true;
};
using MonoTime = MonoClock::time_point;

// The database's wall clock, microseconds since 1970-01-01 UTC; used for rows and for display. Read from the database
// or from a request, never from a clock of this machine.
using WallTime = std::chrono::sys_time<Duration>;

// Reads the local monotonic clock: SystemClock (src/base) the clock of the machine, a virtual one in tests and the
// simulator. Thread: any.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual MonoTime now() const = 0;
};

}  // namespace tocsin

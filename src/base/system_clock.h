// SystemClock: the machine's monotonic (steady) clock, as Clock for all threads of a node. Not the wall clock: wall
// time is that of the databases.
#pragma once

#include "tocsin/clock.h"

namespace tocsin {

// Thread: any.
class SystemClock final : public Clock {
 public:
  MonoTime now() const override {
    return MonoTime(std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now().time_since_epoch()));
  }
};

}  // namespace tocsin

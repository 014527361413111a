// The machine's clocks: the one place that reads them.
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

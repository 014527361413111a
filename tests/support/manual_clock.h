// ManualClock: a monotonic clock that stands still until the test advances it.
#pragma once

#include <atomic>

#include "tocsin/clock.h"

namespace tocsin {

// Thread: any.
class ManualClock final : public Clock {
 public:
  MonoTime now() const override { return MonoTime(Duration(us_)); }
  void advance(Duration by) { us_ += by.count(); }

 private:
  std::atomic<std::int64_t> us_{1'000'000'000};
};

}  // namespace tocsin

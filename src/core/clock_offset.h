// ClockOffset: estimates the database's clock from the local monotonic clock and timed round trips. Each engine has one
// (pipeline/db_clock.h).
//
// One sample is a database time T read between the local instants `asked` and `answered`. At `answered` the database
// showed at least T, so T - answered bounds the offset from below: the estimate is the largest lower bound of the last
// samples (F. Cristian, "Probabilistic clock synchronization", 1989, taken from its safe side). Clocks drift, so a
// bound is lowered with its age. The estimate is late by about a round trip, and not early while the database's clock
// runs slower than the local one by less than kDrift. With an early estimate a claim would be sent before its job is
// due by the database, and win nothing. A sample that contradicts the estimate (T - asked is below it: the clock was
// set back) discards the older samples. Thread: owner only.
#pragma once

#include <array>
#include <cstddef>

#include "tocsin/clock.h"

namespace tocsin {

class ClockOffset {
 public:
  // REQUIRES: asked <= answered. False: it contradicted the estimate (the database's clock went back against the local
  // one); the estimate is now that of this sample.
  bool sample(MonoTime asked, MonoTime answered, WallTime database);

  bool is_known() const { return n_ > 0; }

  // The database shows at least this now. REQUIRES: is_known().
  WallTime at_least(MonoTime now) const { return WallTime(now.time_since_epoch() + low_); }
  // From this local instant on at_least() has reached `time`. REQUIRES: is_known().
  MonoTime when(WallTime time) const { return MonoTime(time.time_since_epoch() - low_); }
  // How far the database's clock may be ahead of at_least(), by the last sample; 0 before the first.
  Duration uncertainty() const { return uncertainty_; }

 private:
  static constexpr std::size_t kKept = 8;
  static constexpr double kDrift = 1e-4;  // crystals are off by 20 to 50 millionths
  struct Bound {
    Duration low{0};
    MonoTime at{};
  };
  std::array<Bound, kKept> bounds_{};
  std::size_t n_ = 0;  // samples since the last contradiction
  Duration low_{0};
  Duration uncertainty_{0};
};

}  // namespace tocsin

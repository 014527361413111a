// ClockOffset: estimates the database's clock from the local monotonic clock and timed round trips. DbClock
// (pipeline/db_clock.h) owns one for each engine, and locks it.
//
// One sample is a database time T that was read between the local instants `asked` and `answered`. At `answered` the
// database showed at least T, so T - answered is a lower bound of the offset between the clocks. The estimate is the
// largest lower bound of the last eight samples (F. Cristian, "Probabilistic clock synchronization", 1989, taken from
// its safe side). Clocks drift, so a bound is lowered with its age.
//
// The estimate is late by about a round trip. It is not early, unless the database's clock runs slower than the local
// one by more than kDrift. With an early estimate a claim would be sent before its job is due by the database, and win
// nothing. T - asked is an upper bound of the offset. If it is below the estimate, the clock was set back: such a
// sample discards the older ones.
// Thread: owner only (DbClock, under its lock).
#pragma once

#include <array>
#include <cstddef>

#include "tocsin/clock.h"

namespace tocsin {

class ClockOffset {
 public:
  // Adds a sample. REQUIRES: asked <= answered. False: the sample contradicted the estimate (the database's clock went
  // back against the local one); the estimate now follows from this sample alone.
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

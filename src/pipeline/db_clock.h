// DbClock: an engine's estimate of the database's clock. Owned by EngineShared and used by all stages. The scanner adds
// a sample with each scan; a claimer adds one if its claim shows that the clock was set forward. The other stages ask
// for the time without a call to the database. The estimate is a lower bound, because the database refuses to claim a
// job that is not due by its own clock.
#pragma once

#include <optional>

#include "base/mutex.h"
#include "base/waker.h"
#include "core/clock_offset.h"

namespace tocsin {

// Thread: any.
class DbClock {
 public:
  // The timekeeper sleeps until a time of the database, so a sample that raises the estimate by more than kStep wakes
  // it. REQUIRES: set before the first sample.
  void set_timekeeper(Waker* timekeeper) { timekeeper_ = timekeeper; }

  // `database` was read between the local instants `asked` and `answered`. False: the database's clock has gone back;
  // the estimate begins anew with this sample, and the scanner then reads everything again.
  bool sample(MonoTime asked, MonoTime answered, WallTime database) {
    bool agrees = false, is_raised = false;
    {
      MutexLock lock(mutex_);
      const bool was_known = offset_.is_known();
      const WallTime before = was_known ? offset_.at_least(answered) : WallTime{};
      agrees = offset_.sample(asked, answered, database);
      is_raised = was_known && offset_.at_least(answered) - before > kStep;
    }
    if (is_raised && timekeeper_) timekeeper_->wake();
    return agrees;
  }
  // Adds the sample only if it raises the estimate by more than kStep. Without this condition the frequent samples of
  // the claimers would replace those of the scans.
  void sample_if_ahead(MonoTime asked, MonoTime answered, WallTime database) {
    const auto before = at_least(answered);
    if (before && database - *before > kStep) static_cast<void>(sample(asked, answered, database));
  }
  // The database shows at least this; nullopt before the first sample.
  std::optional<WallTime> at_least(MonoTime now) const {
    MutexLock lock(mutex_);
    if (!offset_.is_known()) return {};
    return offset_.at_least(now);
  }
  // The local instant from which on at_least() is `time` or later; max() before the first sample.
  MonoTime when(WallTime time) const {
    MutexLock lock(mutex_);
    return offset_.is_known() ? offset_.when(time) : MonoTime::max();
  }
  // How far the database's clock may be ahead of at_least(), by the last sample; 0 before the first.
  Duration uncertainty() const {
    MutexLock lock(mutex_);
    return offset_.uncertainty();
  }

 private:
  static constexpr Duration kStep = std::chrono::milliseconds(1);  // a larger step is no error of measurement
  Waker* timekeeper_ = nullptr;
  mutable Mutex mutex_;
  ClockOffset offset_ TOCSIN_GUARDED_BY(mutex_);
};

}  // namespace tocsin

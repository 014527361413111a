// The engine's shared estimate of the database's clock.
#pragma once

#include <optional>

#include "base/mutex.h"
#include "core/clock_offset.h"

namespace tocsin {

// Thread: any.
class DbClock {
 public:
  // False: the database's clock was found to have gone back.
  bool sample(MonoTime asked, MonoTime answered, WallTime database) {
    MutexLock lock(mutex_);
    return offset_.sample(asked, answered, database);
  }
  // The database shows at least this; nullopt before the first sample.
  std::optional<WallTime> at_least(MonoTime now) const {
    MutexLock lock(mutex_);
    if (!offset_.is_known()) return {};
    return offset_.at_least(now);
  }
  MonoTime when(WallTime time) const {
    MutexLock lock(mutex_);
    return offset_.is_known() ? offset_.when(time) : MonoTime::max();
  }
  Duration uncertainty() const {
    MutexLock lock(mutex_);
    return offset_.uncertainty();
  }

 private:
  mutable Mutex mutex_;
  ClockOffset offset_ TOCSIN_GUARDED_BY(mutex_);
};

}  // namespace tocsin

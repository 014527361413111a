// ClaimsInDoubt: claims that got no answer. Their jobs have not started, but their leases run, and may end before the
// claimer knows which jobs it has won and has released them. The lease reaper makes no job dead meanwhile. Owned by
// EngineShared; the claimers write it, the lease reaper reads it. Thread: any.
#pragma once

#include <optional>

#include "base/assert.h"
#include "base/mutex.h"
#include "tocsin/clock.h"

namespace tocsin {

class ClaimsInDoubt {
 public:
  void add() {
    MutexLock lock(mutex_);
    ++count_;
  }
  // REQUIRES: add() was called for this claim. `now`: when the claimer learned what the claim has won.
  void resolve(MonoTime now) {
    MutexLock lock(mutex_);
    TOCSIN_ASSERT(count_ > 0);
    --count_;
    resolved_at_ = now;
  }
  // True also for a while after the last was resolved: the releases of its jobs are on their way to the database.
  bool may_hold_jobs(MonoTime now) const {
    MutexLock lock(mutex_);
    return count_ > 0 || (resolved_at_ && now - *resolved_at_ < kRelease);
  }

 private:
  // An idle session is asked for up to 2 s before it writes the release. From that request on outcomes are late
  // (EngineShared::has_late_outcomes).
  static constexpr Duration kRelease = std::chrono::seconds(5);

  mutable Mutex mutex_;
  int count_ TOCSIN_GUARDED_BY(mutex_) = 0;
  std::optional<MonoTime> resolved_at_ TOCSIN_GUARDED_BY(mutex_);
};

}  // namespace tocsin

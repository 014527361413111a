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
  // The claimer knows what a claim has won. REQUIRES: add() was called for this claim.
  void resolve() {
    MutexLock lock(mutex_);
    TOCSIN_ASSERT(count_ > 0);
    --count_;
    is_releasing_ = true;
    seen_at_.reset();
  }
  // True also for a while after the last was resolved, counted from the first call after that: the releases of its jobs
  // are on their way to the database.
  bool may_hold_jobs(MonoTime now) {
    MutexLock lock(mutex_);
    if (count_ > 0) return true;
    if (!is_releasing_) return false;
    if (!seen_at_) seen_at_ = now;
    is_releasing_ = now - *seen_at_ < kRelease;
    return is_releasing_;
  }

 private:
  // An idle session is asked for up to 2 s before it writes the release. From that request on outcomes are late
  // (EngineShared::has_late_outcomes).
  static constexpr Duration kRelease = std::chrono::seconds(5);

  Mutex mutex_;
  int count_ TOCSIN_GUARDED_BY(mutex_) = 0;
  bool is_releasing_ TOCSIN_GUARDED_BY(mutex_) = false;
  std::optional<MonoTime> seen_at_ TOCSIN_GUARDED_BY(mutex_);
};

}  // namespace tocsin

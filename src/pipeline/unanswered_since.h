// UnansweredSince: since when the database owes the finisher an answer. After a long wait outcomes pile up and the
// leases of their jobs may end, so the claimers claim nothing (EngineShared::has_stuck_outcomes). Owned by
// EngineShared; the finisher writes it, the claimers read it. Thread: any.
#pragma once

#include <optional>

#include "base/mutex.h"
#include "tocsin/clock.h"

namespace tocsin {

class UnansweredSince {
 public:
  // A request is sent at `now`. If earlier ones were not answered, the wait continues.
  void note_request(MonoTime now) {
    MutexLock lock(mutex_);
    if (!since_) since_ = now;
  }
  // The database has answered; that it refuses a row, or that a row is locked, is an answer, too. That a table is
  // locked is none: nothing can be written meanwhile.
  void note_answer() {
    MutexLock lock(mutex_);
    since_.reset();
  }
  bool has_waited(Duration longer_than, MonoTime now) const {
    MutexLock lock(mutex_);
    return since_ && now - *since_ > longer_than;
  }

 private:
  mutable Mutex mutex_;
  std::optional<MonoTime> since_ TOCSIN_GUARDED_BY(mutex_);  // the first request without an answer
};

}  // namespace tocsin

// ConcurrencyLimiter: bounds how many claimed jobs an engine (the stages for one database) holds, in all and of each
// type, and so bounds its memory. EngineShared (pipeline/engine_shared.h) owns one. A slot counts one job; jobs of
// instant types (claimed and finished in one statement) take none.
//
// JobAdmission takes slots before the claim. A slot is returned when
//  - the outcome of the job is written,
//  - the claim did not win the job or was released, or
//  - a consumer or webhook receiver takes the job over (max_running limits such jobs).
// So the queues between claim and outcome stay bounded even if the database or a handler hangs.
//
// Rule: with `free` of `total` slots free, a type may hold 2 * free * free / total slots, and at least one if any is
// free. A type that is the only one reaches half of all. The fuller the engine is, the less a type may take. No slot is
// taken back, but as jobs end, types that wait together converge to equal parts. Some slots stay free for types that
// come later (with 4,096 slots and 200 waiting types: 170).
//
// Thread: any.
#pragma once

#include <cstddef>
#include <functional>
#include <unordered_map>

#include "base/mutex.h"
#include "tocsin/job.h"

namespace tocsin {

class ConcurrencyLimiter {
 public:
  // REQUIRES: total > 0.
  explicit ConcurrencyLimiter(std::size_t total) : total_(total) {}

  // `callback` wakes the claimers. Each release() calls it, on the thread of the release and outside this object's
  // lock. That thread may hold the lock of the DueQueue, so the callback must not take it. REQUIRES: set before the
  // first release.
  void on_release(std::function<void()> callback) { on_release_ = std::move(callback); }

  // Takes up to `want` slots, as far as the rule allows; returns how many. Does not wait.
  std::size_t acquire(TypeId type, std::size_t want);
  void release(TypeId type, std::size_t n);  // REQUIRES: the type holds at least n slots

  std::size_t running() const;  // slots taken, of all types
  std::size_t running(TypeId type) const;
  // How many slots a type may hold now, by the rule without its minimum of one.
  std::size_t share() const;

 private:
  std::size_t share_of(std::size_t free) const { return 2 * free * free / total_; }

  const std::size_t total_;
  std::function<void()> on_release_;
  mutable Mutex mutex_;
  std::size_t used_ TOCSIN_GUARDED_BY(mutex_) = 0;
  std::unordered_map<TypeId, std::size_t> used_by_type_ TOCSIN_GUARDED_BY(mutex_);
};

}  // namespace tocsin

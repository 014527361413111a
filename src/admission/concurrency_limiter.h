// ConcurrencyLimiter: bounds how many claimed jobs an engine holds, in all and of each type, and so its memory. A slot
// counts one job; jobs of instant types take none. JobAdmission takes it before the claim. It is returned when the
// outcome is written, when the claim did not win the job or was released, or when a consumer or webhook receiver takes
// the job over (max_running limits those). So the queues between claim and outcome stay bounded even if the database or
// a handler hangs.
//
// Rule: a type may hold 2 * free * free / total slots, and at least one if any is free. Alone it reaches half of all.
// The more the node is filled, the less a type may take: as jobs end, types that wait together converge to equal
// parts, and some slots stay free for types that come later (with 4,096 slots and 200 waiting types 170). No slot is
// taken back before.
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

  // `callback` wakes the claimers. It is called after every release, on its thread, outside this object's lock but
  // perhaps under that of the DueQueue, so it must not lock that. REQUIRES: set before the first release.
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

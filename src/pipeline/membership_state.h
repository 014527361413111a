// MembershipState: what the stages of an engine must know of the node's membership: whether the node drains, how long
// its membership lease is valid, whether it is the sole member (no other node is live), and whether the database's
// notifications arrive. Owned by EngineShared; the node sets it through Engine.
//
// Past the end of the lease other nodes may scan this node's shards. Until the lease is extended, the stages of most
// engines scan and claim nothing (EngineConfig::stops_without_lease). In every engine the finisher then treats the
// shards of released jobs as shards of other nodes.
//
// Thread: any.
#pragma once

#include <atomic>
#include <utility>

#include "base/mutex.h"
#include "tocsin/clock.h"

namespace tocsin {

class MembershipState {
 public:
  // `stops`: whether the stages stop while the lease is lost (EngineConfig::stops_without_lease).
  explicit MembershipState(bool stops) : stops_(stops) {}

  void begin_drain() { is_draining_ = true; }
  bool is_draining() const { return is_draining_; }

  // Sets the end of the lease; before the first call it has no end. True: a stage has stopped because the lease was
  // lost, and the caller must wake all stages.
  bool trust_until(MonoTime time) {
    MutexLock lock(mutex_);
    lease_valid_until_ = time;
    return std::exchange(is_awaited_, false);
  }
  // Whether other nodes may scan this node's shards.
  bool is_lease_lost(MonoTime now) const {
    MutexLock lock(mutex_);
    return is_over(now);
  }
  // Whether the stages must stop.
  bool is_stopped(MonoTime now) const { return stops_ && is_lease_lost(now); }
  // As is_stopped(), for a stage that returns kWhenWoken while this is true: the next trust_until() then returns true.
  bool stops_until_woken(MonoTime now) {
    if (!stops_) return false;
    MutexLock lock(mutex_);
    is_awaited_ = is_awaited_ || is_over(now);
    return is_over(now);
  }

  // Sets whether no other node is live. Returns the value before.
  bool set_sole_member(bool is_sole_member) { return is_sole_member_.exchange(is_sole_member); }
  // Sets whether the database's notifications arrive. Returns the value before.
  bool set_listening(bool is_listening) { return is_listening_.exchange(is_listening); }
  bool is_sole_member() const { return is_sole_member_; }
  bool is_listening() const { return is_listening_; }

 private:
  bool is_over(MonoTime now) const TOCSIN_REQUIRES(mutex_) { return now >= lease_valid_until_; }

  const bool stops_;
  mutable Mutex mutex_;
  MonoTime lease_valid_until_ TOCSIN_GUARDED_BY(mutex_) = MonoTime::max();
  bool is_awaited_ TOCSIN_GUARDED_BY(mutex_) = false;  // a stage sleeps until the lease is extended
  std::atomic<bool> is_draining_{false}, is_sole_member_{false}, is_listening_{false};  // each stands alone
};

}  // namespace tocsin

// MembershipState: what the stages of an engine must know of the node's membership: whether the node drains, how long
// its lease is valid, whether it is the sole member, and whether it hears the database's notifications. The node sets
// it through Engine.
//
// Past the end of the lease other nodes may scan this node's shards. Until it is extended the stages of most engines
// scan and claim nothing (EngineConfig::stops_without_lease), and those of all engines treat a released job as one of
// another node.
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
  // Whether stages stop when the lease is lost.
  explicit MembershipState(bool stops) : stops_(stops) {}

  void begin_drain() { is_draining_ = true; }
  bool is_draining() const { return is_draining_; }

  // The lease ends at `time`; there is no end before the first call. True: a stage has stopped without a lease, and the
  // caller must wake all.
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
  // The same for a stage that returns kWhenWoken while this is true: the next trust_until() wakes it.
  bool stops_until_woken(MonoTime now) {
    if (!stops_) return false;
    MutexLock lock(mutex_);
    is_awaited_ = is_awaited_ || is_over(now);
    return is_over(now);
  }

  // Sole member: no other node uses this database. Returns whether it was.
  bool set_sole_member(bool is_sole_member) { return is_sole_member_.exchange(is_sole_member); }
  // Notifications of the database arrive. Returns whether they did.
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

// FlowControl: what this node may start of each type now: permits of max_running, a part of each rate, and slots of the
// start pools (connections to an endpoint, threads of a pool). One per node, shared by the engines of all its
// databases.
//
// Permits and parts of rates are lent to the node for a time (PermitRenewer). Before begin_sharing() the node is taken
// to be alone and has all of them. A token bucket per rate fills at the node's part of it; its capacity is one second
// of that part, at least one token. An instant (`noop`) type takes rate tokens only: no permit and no slot. Thread:
// any.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "admission/lease_table.h"
#include "admission/start_pools.h"
#include "base/mutex.h"
#include "base/waker.h"
#include "ports/permit_store.h"

namespace tocsin {

// Jobs found long after their time start at a rate of their own (catch-up), so that fresh ones stay on time.
enum class Pace { fresh, catch_up };

// Jobs of one type that are due on this node and not claimed; a lane's backlog counts as a million.
struct Waiting {
  std::size_t fresh = 0;
  std::size_t late = 0;  // at the catch-up pace
};

class FlowControl {
 public:
  // `callback` is called outside the lock when more may be started than before. One call per engine. REQUIRES: before
  // the first take().
  void on_capacity(std::function<void()> callback) { on_capacity_.push_back(std::move(callback)); }
  void notify_capacity() const;

  struct Taken {
    std::size_t n = 0;
    MonoTime again = MonoTime::max();  // if fewer than wanted: when to call again; max: the callback says so
  };
  // Takes permits, rate tokens and pool slots to start up to `want` jobs of the type, each for `lease` at most
  // (default: its ttr). A pool slot is returned by put_back(), release(), end_attempt() or hand_over(); a permit by
  // put_back(), release(), release_permit() or end_lease(); tokens by put_back() only. `waiting`: the number of types
  // that wait for the same start pool, this one included.
  Taken take(const BizType& type, std::size_t want, Pace pace, MonoTime now, std::optional<Duration> lease = {},
             std::size_t waiting = 1);
  // Returns what take() gave for `n` jobs that do not start: slots, permits and rate tokens. Does not notify waiters.
  // `is_instant`: as the type was at take().
  void put_back(TypeId type, std::size_t n, Pace pace, bool is_instant);
  // Returns the permits and slots of `n` jobs that have ended.
  void release(TypeId type, std::size_t n);
  // The same for one job in two steps: the attempt has ended, which frees its slot; later its outcome is written, which
  // frees its permit.
  void end_attempt(TypeId type);
  void release_permit(TypeId type) { release_used(type, 1, false); }

  // Jobs leased to consumers and receivers, which keep their permits.
  LeaseTable& leases() { return leases_; }
  const LeaseTable& leases() const { return leases_; }
  // Called by the lease table:
  void hand_over(TypeId type);  // a started job is acknowledged later: frees the pool slot, keeps the permit
  void end_lease(TypeId type);  // that lease has ended: frees the permit
  void take_over(TypeId type);  // a lease that another node gave takes a permit here

  // For the permit renewer -------------------------------------------------------------------------------------------

  struct Grant {
    int n = 0;          // permits that jobs may start under
    MonoTime until{};   // the end of the grant, exclusive
    Duration lease{0};  // jobs started under it must end within this time after `until`
    int total = 0;      // permits of the limit, in the cluster
    int in_use = 0;     // of these, as the nodes last reported
    int reserved = 0;   // permits that the store holds for this node: more than n while more than n are in use
  };
  // From now on starts need permits. Wakes `renewer` when permits that other nodes wait for could be returned.
  void begin_sharing(Waker* renewer);
  void grant(TypeId type, Limit limit, const Grant& grant, MonoTime now);
  // How many permits the node keeps: those granted, or those in use if they are more.
  int held(TypeId type, Limit limit) const;
  std::size_t used(TypeId type) const;               // permits in use
  std::size_t in_pool(const StartPool& pool) const;  // slots of it that are taken
  // Whether a start pool has a free slot. If not, notify_capacity() follows the next release of one.
  bool has_free(const StartPool& pool);
  // Whether the node has several engines.
  bool is_shared_by_engines() const { return on_capacity_.size() > 1; }
  // The longest lease that take() asked for within a minute, if it is longer than the type's ttr; else 0.
  Duration wanted_lease(TypeId type, MonoTime now) const;
  // Average use since the last call, in thousandths of the cluster's rate. Resets the count.
  int pace_since(const BizType& type, Limit limit, MonoTime now);

  // For display -----------------------------------------------------------------------------------------------------

  // Whether the node's grant of max_running is valid, so that the control database counts what starts here. True before
  // begin_sharing().
  bool is_counted(TypeId type, MonoTime now) const;
  // nullopt: nothing granted, or the grant is over.
  std::optional<Grant> granted(TypeId type, Limit limit, MonoTime now) const;
  // Whether the next start at this pace must wait for a rate.
  bool is_paced(const BizType& type, Pace pace, MonoTime now);

 private:
  struct Bucket {
    double tokens = 0;
    std::optional<MonoTime> filled;
    double taken = 0;  // since the renewer asked last
    MonoTime asked{};
  };
  struct Flow {
    std::size_t used = 0;
    std::size_t leased = 0;  // of those used
    Duration wanted_lease{0};
    MonoTime wanted_at{};
    bool is_awaited = false;  // take() gave fewer than wanted
    std::array<Grant, kLimits> grants;
    std::array<Bucket, kLimits> buckets;
  };

  Grant grant_of(const Flow& flow, const BizType& type, Limit limit) const TOCSIN_REQUIRES(mutex_);
  double fill(Flow& flow, const BizType& type, Limit limit, MonoTime now) TOCSIN_REQUIRES(mutex_);
  std::size_t permits(const Flow& flow, const BizType& type, Duration lease, MonoTime now) const
      TOCSIN_REQUIRES(mutex_);
  void release_used(TypeId type, std::size_t n, bool is_awaited);

  std::vector<std::function<void()>> on_capacity_;
  mutable Mutex mutex_;
  Waker* renewer_ TOCSIN_GUARDED_BY(mutex_) = nullptr;
  bool is_shared_ TOCSIN_GUARDED_BY(mutex_) = false;
  std::unordered_map<TypeId, Flow> flows_ TOCSIN_GUARDED_BY(mutex_);
  StartPools pools_ TOCSIN_GUARDED_BY(mutex_);
  LeaseTable leases_{*this};
};

}  // namespace tocsin

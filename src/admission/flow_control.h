// FlowControl: counts what this node may start of each type now: permits of max_running, tokens of its part of each
// rate, and slots of the start pools (connections to an endpoint, threads of a pool). One per node, shared by the
// engines of all its databases: JobAdmission (on the claimers' threads) takes before a claim; the runner, the finisher
// and the lease table return.
//
// The control database lends permits and parts of rates to the node for a time (PermitRenewer). Before begin_sharing()
// the node is taken to be alone and has all of them. Each rate has a TokenBucket that fills at the node's part of it.
// An instant (`noop`) type takes rate tokens only: no permit and no slot. Thread: any.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <unordered_map>
#include <vector>

#include "admission/lease_table.h"
#include "admission/start_pools.h"
#include "admission/token_bucket.h"
#include "base/mutex.h"
#include "base/waker.h"
#include "ports/permit_store.h"

namespace tocsin {

// Jobs found more than the lookahead after their time start at a rate of their own (catch-up), if their type has one,
// so that fresh ones stay on time.
enum class Pace { fresh, catch_up };

// Jobs of one type that are due on this node and not claimed. 1,000,000 stands for a backlog, whose size is not known.
struct Waiting {
  std::size_t fresh = 0;
  std::size_t late = 0;  // at the catch-up pace
};

class FlowControl {
 public:
  // `callback` is called outside the lock when a take() that got fewer than wanted may get more now. Each engine calls
  // this once. REQUIRES: before the first take().
  void on_capacity(std::function<void()> callback) { on_capacity_.push_back(std::move(callback)); }
  void notify_capacity() const;  // calls the callbacks: a start pool has more capacity, or slots were put back

  struct Taken {
    std::size_t n = 0;
    MonoTime again = MonoTime::max();  // if fewer than wanted: when to call again; max: the callback says so
  };
  // Takes permits, rate tokens and pool slots to start up to `want` jobs of the type, each with a lease of at most
  // `lease` (default, and at least, its ttr). A lease longer than that of the grant gets no permit. What is taken is
  // returned by
  //   a pool slot      put_back(), return_all(), return_slot(), hand_over()
  //   a permit         put_back(), return_all(), return_permit(), end_lease()
  //   a rate token     put_back()
  // `waiting`: the number of types that wait for the same start pool, this one included.
  Taken take(const BizType& type, std::size_t want, Pace pace, MonoTime now, std::optional<Duration> lease = {},
             std::size_t waiting = 1);
  // Returns what take() gave for `n` jobs that do not start: slots, permits and rate tokens. Does not notify: that
  // would wake the claimer that could not use them. The caller may call notify_capacity(). `is_instant`: as the type
  // was at take().
  void put_back(TypeId type, std::size_t n, Pace pace, bool is_instant);
  // Returns the permits and slots of `n` jobs that have ended.
  void return_all(TypeId type, std::size_t n);
  // The same for one job in two steps: the attempt has ended, which frees its slot; later its outcome is written, which
  // frees its permit.
  void return_slot(TypeId type);
  void return_permit(TypeId type) { release_used(type, 1, false); }

  // The jobs of types with max_running that are leased to consumers and webhook receivers: each keeps its permit.
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
  // From now on starts need permits. `renewer` is woken when permits that other nodes wait for could be returned.
  void begin_sharing(Waker* renewer);
  // Replaces the node's grant of a limit. Notifies if it has become larger, valid again, or good for longer leases.
  void grant(TypeId type, Limit limit, const Grant& grant, MonoTime now);
  // How many permits the node keeps: those granted, or (max_running) those in use if they are more.
  int held(TypeId type, Limit limit) const;
  std::size_t used(TypeId type) const;  // permits in use; without max_running: jobs that hold what they took
  std::size_t in_pool(const StartPool& pool) const;  // slots of it that are taken
  // Whether a start pool has a free slot. If not, the next release of one notifies.
  bool has_free(const StartPool& pool);
  // Whether the node has several engines.
  bool is_shared_by_engines() const { return on_capacity_.size() > 1; }
  // The longest lease over the type's ttr that take() was asked for; forgotten after a minute without one: 0.
  Duration wanted_lease(TypeId type, MonoTime now) const;
  // How much of a rate was used since the last call, on average: 0 to 1000 thousandths of the cluster's rate. Begins
  // the next count. REQUIRES: not Limit::running.
  int measure_rate_use(const BizType& type, Limit limit, MonoTime now);

  // For display -----------------------------------------------------------------------------------------------------

  // Whether the node's grant of max_running is valid, so that the control database counts what starts here. True before
  // begin_sharing().
  bool is_counted(TypeId type, MonoTime now) const;
  // nullopt: nothing granted, or the grant is over.
  std::optional<Grant> granted(TypeId type, Limit limit, MonoTime now) const;
  // Whether the next start at this pace must wait for a rate token.
  bool is_paced(const BizType& type, Pace pace, MonoTime now);

 private:
  struct Flow {
    std::size_t used = 0;
    std::size_t leased = 0;  // of those used, by jobs in the lease table
    Duration wanted_lease{0};
    MonoTime wanted_at{};
    bool is_awaited = false;  // take() gave fewer than wanted
    std::array<Grant, kLimits> grants;
    std::array<TokenBucket, kLimits> buckets;
  };

  Grant grant_of(const Flow& flow, const BizType& type, Limit limit) const TOCSIN_REQUIRES(mutex_);
  // The node's part of a rate, per second; the tokens of it that the node may use now: none without a valid grant.
  double part_of_rate(const Flow& flow, const BizType& type, Limit limit) const TOCSIN_REQUIRES(mutex_);
  double tokens(Flow& flow, const BizType& type, Limit limit, MonoTime now) TOCSIN_REQUIRES(mutex_);
  // Lowers `taken` to the tokens that there are, and takes these.
  void take_tokens(Flow& flow, const BizType& type, Pace pace, MonoTime now, Taken& taken) TOCSIN_REQUIRES(mutex_);
  std::size_t permits(const Flow& flow, const BizType& type, Duration lease, MonoTime now) const
      TOCSIN_REQUIRES(mutex_);
  // Returns permits. `is_awaited`: notifies even if no take() of the type got fewer than wanted.
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

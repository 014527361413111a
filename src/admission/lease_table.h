// LeaseTable: the leases of types with max_running (jobs that consumers, or receivers of asynchronous webhooks, work
// on). Part of FlowControl, one per node. Each lease that was granted here keeps a permit of this node until it ends.
// Acks and nacks that arrive here remove it at once; for all others the lease reaper asks the database.
//
// A lease may be extended at any node. If this node extends a lease that another node granted, the table keeps it as a
// foreign lease, without a permit. When that node is dead, the permit renewer takes over as many of its permits.
// Invariant: a permit is freed once: an entry is identified by job and token, and is erased once. Thread: any.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "ports/job_store.h"

namespace tocsin {

class FlowControl;

class LeaseTable {
 public:
  explicit LeaseTable(FlowControl& flow) : flow_(flow) {}

  // `callback` is called outside the lock when a lease enters an empty table. Each engine calls this once, to wake its
  // lease reaper. REQUIRES: before the first use.
  void on_first(std::function<void()> callback) { on_first_.push_back(std::move(callback)); }

  // A job started under a permit of this node is now leased, until `ends`: frees its slot in the start pool.
  void enter(TypeId type, const Lease& lease, MonoTime ends);
  // The leases are over (acknowledged, failed or released): frees their permits. Unknown leases are ignored.
  void settle(std::span<const Lease> leases);
  // The lease was extended. An unknown one becomes a foreign lease, unless this node has leased the job again since.
  void extend(TypeId type, const Lease& lease, MonoTime ends);

  // For the lease reaper: at most `most` leases of these shards, of jobs with ids above `after`, by id. REQUIRES:
  // `shards` ascending.
  std::vector<Lease> next(JobId after, std::size_t most, const std::vector<Shard>& shards) const;
  // The database's answer. nullopt: the lease has ended; above 0: the time left; 0: the database could not tell, so
  // nothing changes.
  void note(const Lease& lease, std::optional<Duration> left, MonoTime now);
  bool is_empty() const { return is_empty_; }

  // For the permit renewer: number and latest end of the leases that hold permits of this node.
  std::size_t count(TypeId type) const;
  MonoTime last_end(TypeId type) const;  // MonoTime::min(): there is none
  // Number of foreign leases.
  std::size_t foreign_leases(TypeId type) const;
  // Makes `n` foreign leases ordinary ones: the control database has transferred as many permits to this node.
  void take_over(TypeId type, std::size_t n);

 private:
  struct Entry {
    ClaimToken token = 0;
    TypeId type = 0;
    MonoTime ends{};
    bool is_foreign = false;
  };
  struct Tally {
    std::size_t held = 0, foreign = 0;  // leases with a permit of this node, and without
  };
  using Entries = std::map<JobId, Entry>;

  // Replaces an older lease of the same job, which is over. Returns whether that one held a permit.
  bool put(JobId job, const Entry& entry, bool& is_first) TOCSIN_REQUIRES(mutex_);
  // Returns whether it held a permit.
  bool erase(Entries::iterator entry) TOCSIN_REQUIRES(mutex_);
  void tell_first() const;  // calls on_first_

  FlowControl& flow_;
  std::vector<std::function<void()>> on_first_;
  mutable Mutex mutex_;
  Entries entries_ TOCSIN_GUARDED_BY(mutex_);
  std::unordered_map<TypeId, Tally> tallies_ TOCSIN_GUARDED_BY(mutex_);
  std::atomic<bool> is_empty_{true};  // written under the lock
};

}  // namespace tocsin

// LeaseTable: the leases of jobs that consumers, or receivers of asynchronous webhooks, work on, for types with
// max_running (the most jobs of the type that may run in the cluster). FlowControl owns one per node. Each lease that
// this node granted keeps a permit (the right to run one job of the type) of this node until the lease ends. An ack or
// nack that arrives at this node removes its lease at once. For all other leases the lease reaper asks the database
// whether they have ended.
//
// A lease may be extended at any node. If this node extends a lease that another node granted, the table keeps it as a
// foreign lease, without a permit. When the other node is dead, the permit renewer takes over one of its permits for
// each foreign lease, as far as there are any.
//
// Invariant: a permit is freed once: an entry is identified by job and token, and is erased once.
// Thread: any (the claimers, finishers and lease reapers of all engines, the permit renewer, and network threads).
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

  // `callback` is called, outside the lock, when a lease enters an empty table. Each engine (one per database)
  // registers one, which wakes its lease reaper. REQUIRES: before the first use.
  void on_first(std::function<void()> callback) { on_first_.push_back(std::move(callback)); }

  // A job that was claimed under a permit of this node is leased from now on, until `ends`. Frees its slot in the start
  // pool.
  void enter(TypeId type, const Lease& lease, MonoTime ends);
  // These leases are over: acknowledged, failed or released. Removes them and frees their permits. Ignores unknown
  // ones.
  void settle(std::span<const Lease> leases);
  // The lease now ends at `ends`. An unknown lease becomes a foreign one, unless this node has granted a newer lease of
  // the job since.
  void extend(TypeId type, const Lease& lease, MonoTime ends);

  // For the lease reaper: the next leases to check. At most `most` leases of jobs in `shards` with ids above `after`,
  // in the order of ids. REQUIRES: `shards` ascending.
  std::vector<Lease> next(JobId after, std::size_t most, const std::vector<Shard>& shards) const;
  // Takes the database's answer about a lease. `left`: the time until it ends; nullopt: it has ended; 0: the database
  // could not tell, and nothing changes.
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

  // Adds a lease; an older lease of the job is over. Returns whether the older one held a permit.
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

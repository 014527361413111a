// The jobs of types with max_running that consumers work on, and receivers of asynchronous webhooks: each keeps a
// permit of this node until its lease is over, whoever hears of that first. What is settled at this node is told here
// at once; of all else the lease reaper asks the database.
//
// A lease may be extended at any node. Of one that another node gave this one takes note, and counts it (adopts it) as
// soon as the node that gave it is found dead, together with a permit of that node's.
// Invariant: no permit is freed twice: an entry is one lease, by its token, and ends once. Thread: any.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "tocsin/job_store.h"

namespace tocsin {

class FlowControl;

class LeaseTable {
 public:
  explicit LeaseTable(FlowControl& flow) : flow_(flow) {}

  // Called, outside the lock, when the first lease comes in. REQUIRES: before the first use.
  void on_first(std::function<void()> callback) { on_first_.push_back(std::move(callback)); }

  // A job that was started under a permit of this node is in the hands of somebody outside now, by `ends` at the
  // latest.
  void enter(TypeId type, const Lease& lease, MonoTime ends);
  // Its consumer has given it back. No effect on leases that are not known here.
  void settle(std::span<const Lease> leases);
  // Its consumer keeps it longer.
  void extend(TypeId type, const Lease& lease, MonoTime ends);

  // For the lease reaper: at most `most` of these shards behind `after`, in the order of their ids.
  std::vector<Lease> next(JobId after, std::size_t most, const std::vector<Shard>& shards) const;
  // What the database says: `left` of it, from now on; nullopt: it is over. 0: it cannot tell, so it goes on.
  void note(const Lease& lease, std::optional<Duration> left, MonoTime now);
  bool is_empty() const { return is_empty_; }

  // For the permit renewer: of the leases that hold permits of this node.
  std::size_t count(TypeId type) const;
  MonoTime last_end(TypeId type) const;  // MonoTime::min(): there is none
  // Leases of other nodes that were extended here.
  std::size_t guests(TypeId type) const;
  // So many permits for guests came to this node.
  void adopt(TypeId type, std::size_t n);

 private:
  struct Entry {
    ClaimToken token = 0;
    TypeId type = 0;
    MonoTime ends{};
    bool is_guest = false;
  };
  struct Tally {
    std::size_t held = 0, guests = 0;
  };
  using Entries = std::map<JobId, Entry>;

  // Puts it in the place of an older lease of the same job, which is over. Returns whether that one held a permit.
  bool put(JobId job, const Entry& entry, bool& is_first);
  // Returns whether it held a permit.
  bool erase(Entries::iterator entry);
  void tell_first() const;

  FlowControl& flow_;
  std::vector<std::function<void()>> on_first_;
  mutable std::mutex mutex_;
  Entries entries_;
  std::unordered_map<TypeId, Tally> tallies_;
  std::atomic<bool> is_empty_{true};  // written under the lock
};

}  // namespace tocsin

#include "admission/lease_table.h"

#include <algorithm>

#include "admission/flow_control.h"

namespace tocsin {

bool LeaseTable::put(JobId job, const Entry& entry, bool& is_first) {
  is_first = entries_.empty();
  const auto old = entries_.find(job);
  const bool was_held = old != entries_.end() && erase(old);
  entries_[job] = entry;
  Tally& tally = tallies_[entry.type];
  ++(entry.is_foreign ? tally.foreign : tally.held);
  is_empty_ = false;
  return was_held;
}

bool LeaseTable::erase(Entries::iterator entry) {
  const bool was_held = !entry->second.is_foreign;
  Tally& tally = tallies_[entry->second.type];
  --(was_held ? tally.held : tally.foreign);
  entries_.erase(entry);
  is_empty_ = entries_.empty();
  return was_held;
}

void LeaseTable::tell_first() const {
  for (const auto& callback : on_first_) callback();
}

void LeaseTable::enter(TypeId type, const Lease& lease, MonoTime ends) {
  bool is_first = false, was_held = false;
  flow_.hand_over(type);
  {
    MutexLock lock(mutex_);
    was_held = put(lease.job_id, {lease.token, type, ends, /*is_foreign=*/false}, is_first);
  }
  if (was_held) flow_.end_lease(type);
  if (is_first) tell_first();
}

void LeaseTable::settle(std::span<const Lease> leases) {
  if (is_empty_) return;
  for (const Lease& lease : leases) {
    TypeId type = 0;
    {
      MutexLock lock(mutex_);
      const auto entry = entries_.find(lease.job_id);
      if (entry == entries_.end() || entry->second.token != lease.token) continue;
      type = entry->second.type;
      if (!erase(entry)) continue;
    }
    flow_.end_lease(type);
  }
}

void LeaseTable::extend(TypeId type, const Lease& lease, MonoTime ends) {
  bool is_first = false, was_held = false;
  {
    MutexLock lock(mutex_);
    const auto entry = entries_.find(lease.job_id);
    if (entry != entries_.end() && entry->second.token == lease.token) {
      entry->second.ends = ends;
      return;
    }
    // The job was leased here again since: the newer lease counts.
    if (entry != entries_.end() && !entry->second.is_foreign) return;
    was_held = put(lease.job_id, {lease.token, type, ends, /*is_foreign=*/true}, is_first);
  }
  if (was_held) flow_.end_lease(type);
  if (is_first) tell_first();
}

std::vector<Lease> LeaseTable::next(JobId after, std::size_t most, const std::vector<Shard>& shards) const {
  std::vector<Lease> leases;
  MutexLock lock(mutex_);
  for (auto entry = entries_.upper_bound(after); entry != entries_.end() && leases.size() < most; ++entry) {
    if (std::ranges::binary_search(shards, shard_of(entry->first)))
      leases.push_back({entry->first, entry->second.token});
  }
  return leases;
}

void LeaseTable::note(const Lease& lease, std::optional<Duration> left, MonoTime now) {
  if (!left) return settle({&lease, 1});
  MutexLock lock(mutex_);
  const auto entry = entries_.find(lease.job_id);
  if (entry == entries_.end() || entry->second.token != lease.token || *left == Duration(0)) return;
  entry->second.ends = now + *left;
}

std::size_t LeaseTable::count(TypeId type) const {
  MutexLock lock(mutex_);
  const auto tally = tallies_.find(type);
  return tally == tallies_.end() ? 0 : tally->second.held;
}

MonoTime LeaseTable::last_end(TypeId type) const {
  MonoTime last = MonoTime::min();
  MutexLock lock(mutex_);
  if (const auto tally = tallies_.find(type); tally == tallies_.end() || tally->second.held == 0) return last;
  for (const auto& [job, entry] : entries_)
    if (entry.type == type && !entry.is_foreign) last = std::max(last, entry.ends);
  return last;
}

std::size_t LeaseTable::foreign_leases(TypeId type) const {
  MutexLock lock(mutex_);
  const auto tally = tallies_.find(type);
  return tally == tallies_.end() ? 0 : tally->second.foreign;
}

void LeaseTable::take_over(TypeId type, std::size_t n) {
  MutexLock lock(mutex_);
  for (auto& [job, entry] : entries_) {
    if (n == 0) return;
    if (entry.type != type || !entry.is_foreign) continue;
    entry.is_foreign = false;
    Tally& tally = tallies_[type];
    --tally.foreign;
    ++tally.held;
    flow_.take_over(type);
    --n;
  }
}

}  // namespace tocsin

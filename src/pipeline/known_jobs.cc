#include "pipeline/known_jobs.h"

#include <algorithm>

namespace tocsin {

KnownJobs::KnownJobs(std::size_t capacity)
    : capacity_(capacity),
      type_capacity_(
          std::max<std::size_t>(1, static_cast<std::size_t>(static_cast<double>(capacity) * kShareOfOneType))) {}

std::size_t KnownJobs::room_locked(TypeId type) const {
  auto it = per_type_.find(type);
  const std::size_t held = it == per_type_.end() ? 0 : it->second;
  return std::min(capacity_ - jobs_.size(), type_capacity_ - std::min(type_capacity_, held));
}

KnownJobs::Added KnownJobs::add(JobId job, TypeId type, WallTime fire_at) {
  MutexLock lock(mutex_);
  if (auto known = jobs_.find(job); known != jobs_.end()) {
    if (known->second.fire_at <= fire_at) return Added::already_known;
    known->second.fire_at = fire_at;
    return Added::moved;
  }
  if (room_locked(type) == 0) return Added::full;
  jobs_.emplace(job, Known{type, fire_at});
  ++per_type_[type];
  return Added::yes;
}

void KnownJobs::remove_locked(JobId job) {
  auto it = jobs_.find(job);
  if (it == jobs_.end()) return;
  auto count = per_type_.find(it->second.type);
  if (--count->second == 0) per_type_.erase(count);
  jobs_.erase(it);
}

void KnownJobs::remove(JobId job) {
  MutexLock lock(mutex_);
  remove_locked(job);
}

void KnownJobs::remove(std::span<const Candidate> jobs) {
  MutexLock lock(mutex_);
  for (const Candidate& job : jobs) remove_locked(job.job_id);
}

bool KnownJobs::contains(JobId job) const {
  MutexLock lock(mutex_);
  return jobs_.contains(job);
}

std::size_t KnownJobs::size() const {
  MutexLock lock(mutex_);
  return jobs_.size();
}

std::size_t KnownJobs::room(TypeId type) const {
  MutexLock lock(mutex_);
  return room_locked(type);
}

double KnownJobs::fill(TypeId type) const {
  return 1 - static_cast<double>(room(type)) / static_cast<double>(type_capacity_);
}

double KnownJobs::highest_fill() const {
  MutexLock lock(mutex_);
  std::size_t most = 0;
  for (const auto& [type, n] : per_type_) most = std::max(most, n);
  const std::size_t room = std::min(capacity_ - jobs_.size(), type_capacity_ - std::min(type_capacity_, most));
  return 1 - static_cast<double>(room) / static_cast<double>(type_capacity_);
}

}  // namespace tocsin

#include "pipeline/known_jobs.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace tocsin {

namespace {

// How many more jobs a type may hold. The free entries y that are left then solve held + free - y = 12 y^2 / n.
std::size_t available_of(std::size_t held, std::size_t free, std::size_t capacity) {
  const double n = static_cast<double>(capacity), all = static_cast<double>(held + free);
  const auto left = static_cast<std::size_t>(std::ceil((std::sqrt(1 + 48 * all / n) - 1) * n / 24 - 1e-6));
  return std::max<std::size_t>(free - std::min(free, left), held == 0 && free > 0 ? 1 : 0);
}

}  // namespace

KnownJobs::KnownJobs(std::size_t capacity)
    : capacity_(capacity), alone_(std::max<std::size_t>(1, available_of(0, capacity, capacity))) {}

std::size_t KnownJobs::available_locked(TypeId type) const {
  const auto it = per_type_.find(type);
  return available_of(it == per_type_.end() ? 0 : it->second, capacity_ - jobs_.size(), capacity_);
}

KnownJobs::Added KnownJobs::add(JobId job, TypeId type, WallTime fire_at) {
  MutexLock lock(mutex_);
  return add_locked(job, type, fire_at);
}

KnownJobs::Hint KnownJobs::offer_hint(const Candidate& job) {
  MutexLock lock(mutex_);
  // A job that memory knows with another time needs an entry for the new one: a scan skips the rows of known jobs.
  if (job.fire_at > horizon_ && fill_of(available_locked(job.type_id)) >= kAmple && !jobs_.contains(job.job_id))
    return Hint::left_to_scan;
  if (add_locked(job.job_id, job.type_id, job.fire_at) != Added::full) return Hint::entered;
  const bool is_first = !std::exchange(has_refused_, true);
  return is_first && horizon_ == WallTime::max() ? Hint::first_full : Hint::full;
}

void KnownJobs::set_horizon(WallTime horizon) {
  MutexLock lock(mutex_);
  horizon_ = horizon;
}

void KnownJobs::raise_horizon(WallTime horizon) {
  MutexLock lock(mutex_);
  horizon_ = std::max(horizon_, horizon);
}

bool KnownJobs::take_refused() {
  MutexLock lock(mutex_);
  return std::exchange(has_refused_, false);
}

KnownJobs::Added KnownJobs::add_locked(JobId job, TypeId type, WallTime fire_at) {
  if (auto known = jobs_.find(job); known != jobs_.end()) {
    if (known->second.fire_at <= fire_at) return Added::already_known;
    known->second.fire_at = fire_at;
    return Added::moved;
  }
  if (available_locked(type) == 0) return Added::full;
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

std::size_t KnownJobs::available(TypeId type) const {
  MutexLock lock(mutex_);
  return available_locked(type);
}

double KnownJobs::fill(TypeId type) const { return fill_of(available(type)); }

double KnownJobs::highest_fill() const {
  MutexLock lock(mutex_);
  std::size_t most = 0;
  for (const auto& [type, n] : per_type_) most = std::max(most, n);
  return fill_of(available_of(most, capacity_ - jobs_.size(), capacity_));
}

}  // namespace tocsin

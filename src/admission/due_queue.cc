#include "admission/due_queue.h"

#include <algorithm>
#include <iterator>

namespace tocsin {

bool is_held(const TypeCatalog& catalog, WallTime now, TypeId type) {
  const BizType* known = catalog.find(type);
  return !known || known->is_paused(now);
}

void DueQueue::wake() {
  for (Waker* claimer : claimers_) claimer->wake();
}

void DueQueue::push(std::span<const Candidate> jobs) {
  if (jobs.empty()) return;
  {
    MutexLock lock(mutex_);
    std::vector<Candidate> older;  // than all that wait
    for (const Candidate& job : jobs) {
      std::deque<Candidate>& waiting = types_[job.type_id].jobs;
      const bool is_oldest = !waiting.empty() && job.fire_at < waiting.front().fire_at;
      is_oldest ? older.push_back(job) : waiting.push_back(job);
    }
    std::ranges::stable_sort(older, {}, &Candidate::fire_at);
    for (auto job = older.rbegin(); job != older.rend(); ++job) types_[job->type_id].jobs.push_front(*job);
    size_ += jobs.size();
  }
  wake();
}

void DueQueue::push_backlog(const Backlog& backlog) {
  {
    MutexLock lock(mutex_);
    if (!extend_locked(backlog)) return;
    types_[backlog.lane.type_id].backlog.push_back(backlog);
  }
  wake();
}

// True: the lane was not in the backlog before.
bool DueQueue::extend_locked(const Backlog& backlog) {
  const auto [lane, is_new] = backlog_.try_emplace({backlog.lane, backlog.pace}, backlog.span);
  lane->second.begin_after(std::min(lane->second.after(), backlog.span.after()));
  lane->second.to = std::max(lane->second.to, backlog.span.to);
  return is_new;
}

Backlog DueQueue::take_lane(TypeQueue& from, std::deque<Backlog>::iterator lane) {
  Backlog taken = *lane;
  taken.span = backlog_.at({taken.lane, taken.pace});
  from.backlog.erase(lane);
  return taken;
}

bool DueQueue::has_backlog(Lane lane, Pace pace) const {
  MutexLock lock(mutex_);
  return backlog_.contains({lane, pace});
}

void DueQueue::put_back(std::span<const Candidate> jobs) {
  if (jobs.empty()) return;
  {
    MutexLock lock(mutex_);
    for (auto job = jobs.rbegin(); job != jobs.rend(); ++job) types_[job->type_id].jobs.push_front(*job);
    size_ += jobs.size();
  }
  wake();
}

void DueQueue::put_back(const Backlog& backlog) {
  {
    MutexLock lock(mutex_);
    types_[backlog.lane.type_id].backlog.push_back(backlog);
  }
  wake();
}

void DueQueue::pass(const Backlog& backlog) {
  {
    MutexLock lock(mutex_);
    if (const auto known = backlog_.find({backlog.lane, backlog.pace}); known != backlog_.end())
      known->second.begin_after(backlog.span.after());
  }
  put_back(backlog);
}

std::optional<Backlog> DueQueue::next_lane(TypeId type, Pace pace) {
  MutexLock lock(mutex_);
  const auto found = types_.find(type);
  if (found == types_.end()) return {};
  auto& lanes = found->second.backlog;
  const auto lane = std::ranges::find(lanes, pace, &Backlog::pace);
  if (lane == lanes.end()) return {};
  return take_lane(found->second, lane);
}

void DueQueue::end_backlog(const Backlog& backlog) {
  MutexLock lock(mutex_);
  backlog_.erase({backlog.lane, backlog.pace});
}

Waiting DueQueue::waiting(TypeId type) const {
  constexpr std::size_t kMany = 1'000'000;  // max_running is no larger
  MutexLock lock(mutex_);
  const auto found = types_.find(type);
  if (found == types_.end()) return {};
  Waiting waiting{found->second.jobs.size(), 0};
  for (const Backlog& backlog : found->second.backlog)
    (backlog.pace == Pace::fresh ? waiting.fresh : waiting.late) = kMany;
  return waiting;
}

std::size_t DueQueue::size() const {
  MutexLock lock(mutex_);
  return size_;
}

std::size_t DueQueue::size(TypeId type) const {
  MutexLock lock(mutex_);
  const auto found = types_.find(type);
  return found == types_.end() ? 0 : found->second.jobs.size();
}

std::size_t DueQueue::backlog_lanes() const {
  MutexLock lock(mutex_);
  return backlog_.size();
}

void DueQueue::Locked::take_front(TypeQueue& from, std::size_t n, std::vector<Candidate>& out) {
  const auto end = from.jobs.begin() + static_cast<std::ptrdiff_t>(n);
  out.insert(out.end(), from.jobs.begin(), end);
  from.jobs.erase(from.jobs.begin(), end);
  queue_.size_ -= n;
}

void DueQueue::Locked::return_front(TypeQueue& to, std::span<const Candidate> jobs) {
  to.jobs.insert(to.jobs.begin(), jobs.begin(), jobs.end());
  queue_.size_ += jobs.size();
}

void DueQueue::Locked::spill_back(TypeQueue& from, const DueSpan& span, std::vector<Candidate>& out) {
  const Candidate& job = from.jobs.back();
  const Backlog backlog{job.lane(), span};
  if (queue_.extend_locked(backlog)) from.backlog.push_back(backlog);
  out.push_back(job);
  from.jobs.pop_back();
  --queue_.size_;
}

DueQueue::Types::iterator DueQueue::Locked::erase(Types::iterator type, std::size_t most, std::vector<Candidate>& out) {
  TypeQueue& queue = type->second;
  take_front(queue, std::min(most, queue.jobs.size()), out);
  if (!queue.jobs.empty()) return std::next(type);
  for (const Backlog& backlog : queue.backlog) queue_.backlog_.erase({backlog.lane, backlog.pace});
  return queue_.types_.erase(type);
}

}  // namespace tocsin

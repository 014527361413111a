#include "pipeline/due_queue.h"

#include <algorithm>
#include <limits>

namespace tocsin {

bool is_held(const TypeCatalog& catalog, WallTime now, TypeId type) {
  const BizType* known = catalog.find(type);
  return !known || known->is_paused(now);
}

void DueQueue::wake() {
  for (Waker* consumer : consumers_) consumer->wake();
}

void DueQueue::push(std::span<const Candidate> jobs) {
  if (jobs.empty()) return;
  {
    std::lock_guard lock(mutex_);
    for (const Candidate& job : jobs) types_[job.type_id].jobs.push_back(job);
    size_ += jobs.size();
  }
  wake();
}

void DueQueue::push_backlog(const Backlog& backlog) {
  {
    std::lock_guard lock(mutex_);
    if (!backlog_lanes_.emplace(backlog.lane, backlog.pace).second) return;
    types_[backlog.lane.type_id].backlog.push_back(backlog);
  }
  wake();
}

bool DueQueue::has_backlog(Lane lane, Pace pace) const {
  std::lock_guard lock(mutex_);
  return backlog_lanes_.contains({lane, pace});
}

void DueQueue::put_back(const Backlog& backlog) {
  {
    std::lock_guard lock(mutex_);
    types_[backlog.lane.type_id].backlog.push_back(backlog);
  }
  wake();
}

std::optional<Backlog> DueQueue::next_lane(TypeId type, Pace pace) {
  std::lock_guard lock(mutex_);
  const auto found = types_.find(type);
  if (found == types_.end()) return {};
  auto& lanes = found->second.backlog;
  const auto lane = std::ranges::find(lanes, pace, &Backlog::pace);
  if (lane == lanes.end()) return {};
  const Backlog next = *lane;
  lanes.erase(lane);
  return next;
}

void DueQueue::end_backlog(const Backlog& backlog) {
  std::lock_guard lock(mutex_);
  backlog_lanes_.erase({backlog.lane, backlog.pace});
}

Waiting DueQueue::waiting(TypeId type) const {
  constexpr std::size_t kMany = 1'000'000;  // as many as any type may run
  std::lock_guard lock(mutex_);
  const auto found = types_.find(type);
  if (found == types_.end()) return {};
  Waiting waiting{found->second.jobs.size(), 0};
  for (const Backlog& backlog : found->second.backlog)
    (backlog.pace == Pace::fresh ? waiting.fresh : waiting.late) = kMany;
  return waiting;
}

std::size_t DueQueue::size() const {
  std::lock_guard lock(mutex_);
  return size_;
}

std::size_t DueQueue::size(TypeId type) const {
  std::lock_guard lock(mutex_);
  const auto found = types_.find(type);
  return found == types_.end() ? 0 : found->second.jobs.size();
}

std::size_t DueQueue::backlog_lanes() const {
  std::lock_guard lock(mutex_);
  return backlog_lanes_.size();
}

DueQueue::Turn::iterator DueQueue::after(TypeId last) {
  auto it = types_.upper_bound(last);
  return it == types_.end() ? types_.begin() : it;
}

void DueQueue::drop_held(const RunRules& rules, DueBatch& batch) {
  for (auto it = types_.begin(); it != types_.end();) {
    TypeQueue& queue = it->second;
    if (is_held(rules.catalog, rules.now, it->first)) {
      size_ -= queue.jobs.size();
      batch.dropped.insert(batch.dropped.end(), queue.jobs.begin(), queue.jobs.end());
      for (const Backlog& backlog : queue.backlog) backlog_lanes_.erase({backlog.lane, backlog.pace});
      it = types_.erase(it);
    } else {
      spill(queue, *rules.catalog.find(it->first), rules.now, batch);
      it = queue.jobs.empty() && queue.backlog.empty() ? types_.erase(it) : std::next(it);
    }
  }
}

std::size_t DueQueue::keep_in_memory(TypeQueue& queue, const BizType& type, WallTime now) {
  const bool is_held_back = type.max_running || type.rate_per_s || type.room == 0;
  if (!type.is_pull()) return is_held_back ? most_held_back_ : queue.jobs.size();
  if (queue.asked_at == WallTime{} || !is_unasked(type) || now < queue.asked_at) queue.asked_at = now;
  return now - queue.asked_at > kUnaskedStay ? 0 : most_held_back_;
}

// What nobody asks for, and what may not start yet, must not fill the memory that other types need.
void DueQueue::spill(TypeQueue& queue, const BizType& type, WallTime now, DueBatch& batch) {
  if (queue.jobs.empty()) return;
  const std::size_t keep = keep_in_memory(queue, type, now);
  while (queue.jobs.size() > keep) {  // the youngest first
    const Candidate& job = queue.jobs.back();
    // Older rows of the lane may be in memory and follow later: from the beginning of time. What is late by then goes
    // at the catch-up pace if the type has one.
    const DueSpan span{type.catch_up_rate_per_s ? now - lookahead_ : WallTime::min()};
    if (backlog_lanes_.emplace(job.lane(), Pace::fresh).second) queue.backlog.push_back({job.lane(), span});
    batch.dropped.push_back(job);
    queue.jobs.pop_back();
    --size_;
  }
}

// So that the first `want` jobs of the queue may still run.
void DueQueue::drop_too_late(TypeQueue& queue, const BizType& type, std::size_t want, WallTime now, DueBatch& batch) {
  if (!type.drop_older_than) return;
  std::vector<Candidate> good;
  while (!queue.jobs.empty() && good.size() < want) {
    const Candidate job = queue.jobs.front();
    queue.jobs.pop_front();
    if (type.is_too_late(job.fire_at, now)) {
      batch.dropped.push_back(job);
      --size_;
    } else {
      good.push_back(job);
    }
  }
  queue.jobs.insert(queue.jobs.begin(), good.begin(), good.end());
}

DueBatch DueQueue::pop(std::size_t most, const RunRules& rules, RunningGate& gate, ClaimerRole role) {
  std::lock_guard lock(mutex_);
  DueBatch batch;
  drop_held(rules, batch);
  if (types_.empty()) return batch;
  // No longer than it can be, should the database's clock have been set back.
  const bool is_calm_time = rules.now < calm_until_ && calm_until_ - rules.now <= kCalmMemory;
  if (role == ClaimerRole::express || (role == ClaimerRole::helper && is_calm_time)) {
    const bool found = take(Source::calm, most, rules, gate, batch);
    batch.is_left_to_others = !found && role == ClaimerRole::helper &&
                              std::ranges::any_of(types_, [&](const auto& entry) { return is_crowd(entry.second); });
    return batch;
  }
  // In turns: fresh jobs must not wait behind a long backlog, nor the backlog for ever behind fresh jobs.
  using enum Source;
  constexpr Source kTurns[4][3] = {
      {calm, crowded, backlog}, {backlog, calm, crowded}, {crowded, calm, backlog}, {backlog, crowded, calm}};
  for (const Source source : kTurns[turn_++ % 4]) {
    if (take(source, most, rules, gate, batch)) break;
  }
  return batch;
}

bool DueQueue::take(Source source, std::size_t most, const RunRules& rules, RunningGate& gate, DueBatch& batch) {
  if (source == Source::backlog) return take_backlog(most, rules, gate, batch);
  if (!take_jobs(source, most, rules, gate, batch)) return false;
  const bool is_beside_crowd = std::ranges::any_of(types_, [&](const auto& entry) { return is_crowd(entry.second); });
  if (source == Source::calm && is_beside_crowd) calm_until_ = rules.now + kCalmMemory;
  return true;
}

std::size_t DueQueue::take_slots(const BizType& type, std::size_t want, const RunRules& rules, RunningGate& gate,
                                 DueBatch& batch, Pace pace, bool one_ttr) {
  if (type.is_pull()) want = std::min(want, polls_.demand(type.type_id));
  if (want == 0) return 0;
  std::optional<Duration> lease;
  if (type.is_pull() && type.max_running) lease = polls_.longest_ttr(type.type_id);
  const FlowControl::Taken taken = rules.flow.take(type, want, pace, rules.local_now, lease);
  batch.again = std::min(batch.again, taken.again);
  if (type.is_instant()) return taken.n;
  // Of a pull type slots are held until the jobs are handed out; what limits those in work is max_running.
  const std::size_t slots = gate.acquire(type.type_id, taken.n);
  std::size_t used = slots;
  if (type.is_pull()) {
    used = 0;
    for (PollShare& share : polls_.take(type.type_id, slots, one_ttr)) {
      used += share.n;
      batch.polls.push_back(std::move(share));
    }
    gate.release(type.type_id, slots - used);  // somebody went away meanwhile
  }
  rules.flow.put_back(type.type_id, taken.n - used, pace, /*is_instant=*/false);
  return used;
}

bool DueQueue::take_jobs(Source source, std::size_t most, const RunRules& rules, RunningGate& gate, DueBatch& batch) {
  const auto is_meant = [&](const Turn::value_type& entry) {
    const std::size_t n = entry.second.jobs.size();
    const BizType& type = *rules.catalog.find(entry.first);
    // Who may take none must not make the others' shares smaller.
    return n > 0 && (n > crowd_) == (source == Source::crowded) && type.room > 0 && !is_unasked(type);
  };
  const auto waiting = static_cast<std::size_t>(std::ranges::count_if(types_, is_meant));
  if (waiting == 0) return false;
  const std::size_t share = std::max<std::size_t>(1, most / waiting);
  auto it = after(last_of(source));
  for (std::size_t seen = 0; seen < types_.size() && batch.jobs.size() < most; ++seen) {
    TypeQueue& queue = it->second;
    const BizType& type = *rules.catalog.find(it->first);
    const bool fits = batch.jobs.empty() || (type.is_instant() == batch.is_instant && type.is_pull() == batch.is_pull);
    if (fits && is_meant(*it)) {
      drop_too_late(queue, type, std::min(share, most - batch.jobs.size()), rules.now, batch);
      const std::size_t want = std::min({share, queue.jobs.size(), most - batch.jobs.size()});
      const auto n =
          static_cast<std::ptrdiff_t>(take_slots(type, want, rules, gate, batch, Pace::fresh, /*one_ttr=*/false));
      if (n > 0) {
        batch.is_instant = type.is_instant();
        batch.is_pull = type.is_pull();
        batch.is_paced = batch.is_paced || type.rate_per_s;
        batch.jobs.insert(batch.jobs.end(), queue.jobs.begin(), queue.jobs.begin() + n);
        queue.jobs.erase(queue.jobs.begin(), queue.jobs.begin() + n);
        size_ -= static_cast<std::size_t>(n);
        if (batch.jobs.size() == static_cast<std::size_t>(n)) last_of(source) = it->first;
      }
    }
    if (++it == types_.end()) it = types_.begin();
  }
  return !batch.jobs.empty();
}

bool DueQueue::take_backlog(std::size_t most, const RunRules& rules, RunningGate& gate, DueBatch& batch) {
  auto it = after(last_of(Source::backlog));
  for (std::size_t seen = 0; seen < types_.size(); ++seen) {
    TypeQueue& queue = it->second;
    // The first lane of each pace: if it must wait, all of that pace must.
    for (const Pace pace : {Pace::fresh, Pace::catch_up}) {
      const auto lane = std::ranges::find(queue.backlog, pace, &Backlog::pace);
      if (lane == queue.backlog.end()) continue;
      const BizType& type = *rules.catalog.find(it->first);
      batch.limit = take_slots(type, std::min(most, kBacklogPiece), rules, gate, batch, pace, /*one_ttr=*/true);
      if (batch.limit == 0) continue;
      batch.is_instant = type.is_instant();
      batch.is_pull = type.is_pull();
      batch.is_paced = type.rate_per_s || type.catch_up_rate_per_s;
      batch.backlog = *lane;
      if (type.drop_older_than)
        batch.backlog->span.from = std::max(batch.backlog->span.from, rules.now - *type.drop_older_than);
      queue.backlog.erase(lane);
      last_of(Source::backlog) = it->first;
      return true;
    }
    if (++it == types_.end()) it = types_.begin();
  }
  return false;
}

}  // namespace tocsin

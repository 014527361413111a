#include "admission/poll_queue.h"

#include <algorithm>
#include <utility>

namespace tocsin {
namespace {

void answer_with_nothing(const std::vector<PollPtr>& polls) {
  for (const PollPtr& poll : polls) poll->answer({});
}

}  // namespace

std::size_t PollQueue::join(const std::vector<Waker*>& claimers, Waker* sweeper) {
  claimers_.insert(claimers_.end(), claimers.begin(), claimers.end());
  sweeper_ = sweeper;
  MutexLock lock(mutex_);
  looked_.push_back(MonoTime::min());
  return looked_.size() - 1;
}

void PollQueue::wake_claimers() {
  for (Waker* claimer : claimers_) claimer->wake();
}

bool PollQueue::add(PollPtr poll) {
  bool is_first_to_end = false;
  {
    MutexLock lock(mutex_);
    if (is_closed_) {
      lock.unlock();
      poll->answer({});
      return true;
    }
    if (size_ >= capacity_) return false;
    const MonoTime end = std::max(poll->deadline, poll->arrived + kLeastStay);
    is_first_to_end = end < next_expiry_;
    next_expiry_ = std::min(next_expiry_, end);
    asked_[poll->type_id] = poll->arrived;
    Line& line = lines_[poll->type_id];
    line.demand += poll->max;
    line.polls.push_back(std::move(poll));
    ++size_;
  }
  wake_claimers();
  if (is_first_to_end && sweeper_) sweeper_->wake();
  return true;
}

std::size_t PollQueue::demand(TypeId type) const {
  MutexLock lock(mutex_);
  const auto line = lines_.find(type);
  return line == lines_.end() ? 0 : line->second.demand;
}

Waiting PollQueue::asked_for(TypeId type, const Waiting& due) const {
  const std::size_t asked = demand(type), late = std::min(due.late, asked);
  return {std::min(due.fresh, asked - late), late};
}

Duration PollQueue::longest_ttr(TypeId type) const {
  MutexLock lock(mutex_);
  const auto line = lines_.find(type);
  Duration longest{0};
  if (line == lines_.end()) return longest;
  for (const PollPtr& poll : line->second.polls) longest = std::max(longest, poll->ttr);
  return longest;
}

bool PollQueue::was_asked_since(TypeId type, MonoTime time) const {
  MutexLock lock(mutex_);
  const auto asked = asked_.find(type);
  if (asked != asked_.end() && asked->second >= time) return true;
  const auto line = lines_.find(type);
  return (line != lines_.end() && line->second.demand > 0) ||
         std::ranges::any_of(resting_, [type](const Resting& each) { return each.poll->type_id == type; });
}

std::vector<PollShare> PollQueue::take(TypeId type, std::size_t n, bool one_ttr) {
  std::vector<PollShare> shares;
  std::vector<PollPtr> gone;  // destroyed outside the lock, with what their functions hold
  MutexLock lock(mutex_);
  const auto found = lines_.find(type);
  if (found == lines_.end()) return shares;
  Line& line = found->second;
  while (n > 0 && !line.polls.empty()) {
    const PollPtr& poll = line.polls.front();
    const bool is_gone = poll->is_gone();
    if (!is_gone && one_ttr && !shares.empty() && poll->ttr != shares.front().poll->ttr) break;
    line.demand -= poll->max;
    --size_;
    if (is_gone) {
      gone.push_back(poll);
    } else {
      shares.push_back({poll, std::min(n, poll->max)});
      n -= shares.back().n;
    }
    line.polls.pop_front();
  }
  if (line.polls.empty()) lines_.erase(found);
  return shares;
}

void PollQueue::put_back(const std::vector<PollPtr>& polls) {
  if (polls.empty()) return;
  {
    MutexLock lock(mutex_);
    if (is_closed_) {
      lock.unlock();
      return answer_with_nothing(polls);
    }
    // May exceed the capacity by the polls that claimers held: these were accepted before.
    for (auto poll = polls.rbegin(); poll != polls.rend(); ++poll) {
      Line& line = lines_[(*poll)->type_id];
      line.demand += (*poll)->max;
      line.polls.push_front(*poll);
      ++size_;
    }
  }
  wake_claimers();
  if (sweeper_) sweeper_->wake();  // its time may have passed meanwhile
}

void PollQueue::put_back_later(const std::vector<PollPtr>& polls, MonoTime until) {
  if (polls.empty()) return;
  {
    MutexLock lock(mutex_);
    if (is_closed_) {
      lock.unlock();
      return answer_with_nothing(polls);
    }
    for (const PollPtr& poll : polls)
      resting_.push_back({poll, std::min(until, std::max(poll->deadline, poll->arrived + kLeastStay))});
    size_ += polls.size();
  }
  if (sweeper_) sweeper_->wake();
}

bool PollQueue::end_rests(MonoTime now, MonoTime& next) {
  const std::vector<Resting> all = std::exchange(resting_, {});
  for (const Resting& each : all) {
    if (each.until > now) {
      next = std::min(next, each.until);
      resting_.push_back(each);
      continue;
    }
    Line& line = lines_[each.poll->type_id];
    line.demand += each.poll->max;
    line.polls.push_back(each.poll);
  }
  return resting_.size() < all.size();
}

template <class Ends>
std::vector<PollPtr> PollQueue::extract(Ends ends) {
  std::vector<PollPtr> out;
  for (auto line = lines_.begin(); line != lines_.end();) {
    auto& [polls, demand] = line->second;
    const auto rest = std::stable_partition(polls.begin(), polls.end(), ends);
    for (auto poll = polls.begin(); poll != rest; ++poll) {
      demand -= (*poll)->max;
      --size_;
      out.push_back(std::move(*poll));
    }
    polls.erase(polls.begin(), rest);
    line = polls.empty() ? lines_.erase(line) : std::next(line);
  }
  return out;
}

void PollQueue::note_nothing_due(std::size_t engine, MonoTime now) {
  std::vector<PollPtr> over;
  {
    MutexLock lock(mutex_);
    looked_.resize(std::max(looked_.size(), engine + 1), MonoTime::min());
    looked_[engine] = now;
    if (size_ == 0) return;
    const MonoTime all_looked = *std::ranges::min_element(looked_);
    over = extract([&](const PollPtr& poll) { return poll->deadline <= now && poll->arrived <= all_looked; });
  }
  answer_with_nothing(over);
}

MonoTime PollQueue::expire(MonoTime now) {
  std::vector<PollPtr> gone, over;
  MonoTime next = MonoTime::max();
  bool has_more = false;
  {
    MutexLock lock(mutex_);
    if (size_ > 0) {
      has_more = end_rests(now, next);
      gone = extract([](const PollPtr& poll) { return poll->is_gone(); });
      over = extract([&next, now](const PollPtr& poll) {
        const MonoTime end = std::max(poll->deadline, poll->arrived + kLeastStay);
        if (end > now) next = std::min(next, end);
        return end <= now;
      });
      if (size_ > 0) next = std::min(next, now + kGoneCheck);
    }
    next_expiry_ = next;
  }
  answer_with_nothing(over);
  if (has_more) wake_claimers();
  return next;
}

void PollQueue::close() {
  std::vector<PollPtr> all;
  {
    MutexLock lock(mutex_);
    is_closed_ = true;
    MonoTime next = MonoTime::max();
    end_rests(MonoTime::max(), next);
    all = extract([](const PollPtr&) { return true; });
  }
  answer_with_nothing(all);
}

std::size_t PollQueue::size() const {
  MutexLock lock(mutex_);
  return size_;
}

}  // namespace tocsin

#include "pipeline/timekeeper.h"

#include <algorithm>

namespace tocsin {
namespace {

// A step back smaller than this is the normal error of the clock estimate: the wheel waits until time catches up.
constexpr Duration kToleratedStepBack = std::chrono::milliseconds(50);

}  // namespace

MonoTime Timekeeper::step(MonoTime now) {
  if (shared_.membership.is_draining()) return kWhenWoken;
  const auto db_now = shared_.db_clock.at_least(now);
  // Hints may be waiting already, and when they fill the memory no push will wake this stage again.
  if (!db_now) return now + shared_.config.retry_pause;
  const EngineConfig& config = shared_.config;
  if (!wheel_) wheel_.emplace(config.tick, config.hint_window(), config.capacity, *db_now);

  dropped_.clear();
  if (*db_now + kToleratedStepBack < wheel_->position()) wheel_->rewind(*db_now, dropped_);
  // Before anything is added: a wheel that was empty has not advanced, so it does not reach as far ahead.
  due_.clear();
  wheel_->advance(*db_now, due_);
  const auto candidates = shared_.candidates.pop_some(kIntake);
  for (const Candidate& job : candidates) {
    if (!wheel_->add(job)) dropped_.push_back(job);
  }
  // Candidates that were overdue sit in the next tick.
  wheel_->advance(*db_now, due_);
  // A job that was moved has an entry for every move, so there may be more of them than known jobs.
  const std::size_t available = config.capacity - std::min(config.capacity, shared_.due.size());
  if (due_.size() > available) {
    dropped_.insert(dropped_.end(), due_.begin() + static_cast<std::ptrdiff_t>(available), due_.end());
    due_.resize(available);
  }
  shared_.due.push(due_);
  if (!dropped_.empty()) {
    shared_.known.remove(dropped_);
    shared_.events.count(Counter::refused, static_cast<std::int64_t>(dropped_.size()));
  }

  if (candidates.size() == kIntake) return now;
  const auto next = wheel_->next();
  return next ? shared_.db_clock.when(*next) : kWhenWoken;
}

}  // namespace tocsin

#include "pipeline/timekeeper.h"

namespace tocsin {
namespace {

// A step back smaller than this is the ordinary wobble of the estimate: the wheel just stands still until time catches up.
constexpr Duration kToleratedStepBack = std::chrono::milliseconds(50);

}  // namespace

MonoTime Timekeeper::step(MonoTime now) {
  if (shared_.is_draining) return kWhenWoken;
  const auto db_now = shared_.db_clock.at_least(now);
  if (!db_now) return kWhenWoken;
  const EngineConfig& config = shared_.config;
  // A second more than the lookahead: a hint may reach further than the last scan did.
  if (!wheel_) wheel_.emplace(config.tick, config.lookahead + std::chrono::seconds(1), config.capacity, *db_now);

  dropped_.clear();
  if (*db_now + kToleratedStepBack < wheel_->position()) wheel_->rewind(*db_now, dropped_);
  const auto candidates = shared_.candidates.pop_some(kIntake);
  for (const Candidate& job : candidates) {
    if (!wheel_->add(job)) dropped_.push_back(job);
  }
  if (!dropped_.empty()) {
    shared_.known.remove(dropped_);
    shared_.events.count(Counter::refused, static_cast<std::int64_t>(dropped_.size()));
  }
  // Up to the last tick and one more: what was overdue when it came in sits one tick ahead.
  due_.clear();
  wheel_->advance(*db_now, due_);
  shared_.due.push(due_);

  if (candidates.size() == kIntake) return now;
  const auto next = wheel_->next();
  return next ? shared_.db_clock.when(*next) : kWhenWoken;
}

}  // namespace tocsin

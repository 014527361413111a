// Makes dead what nobody may claim any more: jobs whose lease ended on their last allowed attempt, and those of types
// that drop what is too late.
//
// Thread: owner only, except the inputs it shares (EngineShared).
#pragma once

#include <optional>
#include <vector>

#include "base/stage.h"
#include "pipeline/engine_shared.h"

namespace tocsin {

class LeaseReaper final : public Stage {
 public:
  LeaseReaper(EngineShared& shared, JobStore& store) : shared_(shared), store_(store) {}

  const char* name() const override { return "lease_reaper"; }
  MonoTime step(MonoTime now) override {
    if (shared_.is_draining) return kWhenWoken;
    const auto jobs = shared_.expired.pop_some(shared_.config.finish_batch);
    return jobs.empty() ? drop_late(now) : bury(now, jobs);
  }

 private:
  MonoTime bury(MonoTime now, const std::vector<JobId>& jobs) {
    const auto buried = store_.bury(jobs);
    // The rows are as they were: the next overdue scan brings them again.
    if (!buried) return failed(now, buried.error());
    shared_.events.count(Counter::buried, *buried);
    return now;
  }
  MonoTime drop_late(MonoTime now) {
    if (!late_) {
      const auto next = shared_.too_late.pop_some(1);
      if (next.empty()) return kWhenWoken;
      late_ = next.front();
    }
    const int most = static_cast<int>(shared_.config.finish_batch);
    const auto dropped = store_.drop_late(late_->lane, late_->before, most, shared_.config.node);
    if (!dropped || *dropped < most) late_.reset();
    if (!dropped) return failed(now, dropped.error());
    shared_.events.count(Counter::dropped_late, *dropped);
    return now;
  }
  MonoTime failed(MonoTime now, const Error& error) {
    shared_.events.failed(name(), error);
    return now + shared_.config.retry_pause;
  }

  EngineShared& shared_;
  JobStore& store_;
  std::optional<LateLane> late_;
};

}  // namespace tocsin

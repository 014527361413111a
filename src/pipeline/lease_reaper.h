// Makes dead the jobs whose lease ended on their last allowed attempt: nobody may claim them, nobody will finish them.
//
// Thread: owner only, except the inputs it shares (EngineShared).
#pragma once

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
    if (jobs.empty()) return kWhenWoken;
    const auto buried = store_.bury(jobs);
    if (!buried) {
      // The rows are as they were: the next overdue scan brings them again.
      shared_.events.failed(name(), buried.error());
      return now + shared_.config.retry_pause;
    }
    shared_.events.count(Counter::buried, *buried);
    return now;
  }

 private:
  EngineShared& shared_;
  JobStore& store_;
};

}  // namespace tocsin

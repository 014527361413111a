// A claimer alone, on a store that answers as told.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <vector>

#include "pipeline/claimer.h"
#include "unit/pipeline/stage_fixture.h"

namespace tocsin {

class ClaimerTest : public StageFixture {
 protected:
  void SetUp() override {
    set_types({biz_type(1), biz_type(2), biz_type(3, "noop")});
    know_time();
    claimer_ = std::make_unique<Claimer>(shared(), store, 42);
  }
  MonoTime step() { return claimer_->step(now); }
  Claimer& claimer() { return *claimer_; }
  std::vector<ClaimedJob> won() { return shared().claimed.pop_some(1'000'000); }
  std::size_t running() { return shared().limiter.running(); }
  void win_all_but(const std::set<JobId>& lost) {
    store.on_claim = [this, lost](auto jobs, auto, auto&) {
      std::vector<ClaimedJob> out;
      for (const JobId id : jobs) {
        if (!lost.contains(id)) out.push_back(claimed(id, 1));
      }
      return out;
    };
  }

 private:
  std::unique_ptr<Claimer> claimer_;
};

}  // namespace tocsin

// The finisher alone: outcomes go in by give(), and the store notes what it is asked to write.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "pipeline/finisher.h"
#include "unit/pipeline/stage_fixture.h"

namespace tocsin {

class FinisherTest : public StageFixture {
 protected:
  FinisherTest() {
    config.tell_owner = [this](const Candidate& job) { told.push_back(job); };
    finisher_ = std::make_unique<Finisher>(shared(), store, 42);
  }
  void SetUp() override {
    set_types({biz_type(1)});
    reply_with(FinishReply::applied);
  }
  void give(ClaimedJob job, Outcome outcome, bool is_released = false) {
    ASSERT_EQ(shared().flow->take(biz_type(job.job.type_id), 1, Pace::fresh, now).n, 1U);
    ASSERT_EQ(shared().limiter.acquire(job.job.type_id, 1), 1U);
    auto claimed = std::make_shared<const ClaimedJob>(std::move(job));
    ASSERT_TRUE(shared().outcomes.try_push({std::move(claimed), std::move(outcome), is_released}));
  }
  // Gives a claim that did not start, of a job that was due three seconds ago.
  JobId give_old_release() {
    know_time();
    now += std::chrono::milliseconds(40);
    ClaimedJob job = claimed(make_job_id(1, 0), 1);
    job.fire_at_before = db_now() - std::chrono::seconds(3);
    give(job, Outcome::not_started(Duration(0)));
    return job.job.job_id;
  }
  void reply_with(FinishReply reply) {
    store.on_finish = [this, reply](std::span<const FinishRequest> requests) {
      sent.assign(requests.begin(), requests.end());
      return std::vector<FinishReply>(requests.size(), reply);
    };
  }
  MonoTime step() { return finisher_->step(now); }
  std::size_t running() { return shared().limiter.running(); }

  std::vector<FinishRequest> sent;
  std::vector<Candidate> told;  // to the owners of other shards

 private:
  std::unique_ptr<Finisher> finisher_;
};

}  // namespace tocsin

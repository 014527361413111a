#include "pipeline/runner.h"

#include <gtest/gtest.h>

#include "pipeline/finisher.h"
#include "unit/pipeline/stage_fixture.h"

namespace tocsin {
namespace {

// Keeps what was started; the test says when and how it ends.
class HeldHandler final : public Handler {
 public:
  void start(const ClaimedJob& job, Finish finish) override { started.emplace_back(&job, std::move(finish)); }
  std::vector<std::pair<const ClaimedJob*, Finish>> started;
};

class RunnerTest : public StageFixture {
 protected:
  void SetUp() override { set_types({biz_type(1), biz_type(2, "carrier_pigeon")}); }
  void give(ClaimedJob job) {
    ASSERT_EQ(shared().flow->take(biz_type(job.job.type_id), 1, Pace::fresh, now).n, 1U);
    ASSERT_EQ(shared().limiter.acquire(job.job.type_id, 1), 1U);
    ASSERT_TRUE(shared().claimed.try_push(std::move(job)));
  }
  MonoTime step() { return runner_->step(now); }
  std::vector<FinishedAttempt> outcomes() { return shared().outcomes.pop_some(1'000'000); }

  HeldHandler handler;

 private:
  std::unique_ptr<Runner> runner_ = std::make_unique<Runner>(shared(), [this](const BizType& type) -> Handler* {
    return type.handler_kind == "webhook" ? &handler : nullptr;
  });
};

TEST_F(RunnerTest, StartsTheHandlerAndHandsOnItsOutcome) {
  give(claimed(1, 1));
  EXPECT_EQ(step(), kWhenWoken);
  ASSERT_EQ(handler.started.size(), 1U);
  EXPECT_EQ(handler.started[0].first->job.job_id, 1);
  EXPECT_TRUE(outcomes().empty());
  handler.started[0].second(Outcome::retry("not now", 3s));
  const auto runs = outcomes();
  ASSERT_EQ(runs.size(), 1U);
  EXPECT_EQ(runs[0].claimed->token, 10);
  EXPECT_EQ(runs[0].outcome.kind, Outcome::Kind::retry);
  EXPECT_EQ(runs[0].outcome.retry_after, 3s);
  EXPECT_FALSE(runs[0].is_released);
  EXPECT_EQ(shared().limiter.running(), 1U) << "free only when the outcome is written";
}

// At a saturated endpoint the next attempt would wait for the disk otherwise. The limiter bounds the outcomes.
TEST_F(RunnerTest, AnAttemptThatEndsFreesItsStartSlotBeforeItsOutcomeIsWritten) {
  BizType type = biz_type(1);
  const auto pool = pool_of(2);
  type.pool = pool;
  set_types({type});
  int told = 0;
  shared().flow->on_capacity([&] { ++told; });
  ASSERT_EQ(shared().flow->take(type, 3, Pace::fresh, now).n, 2U);
  ASSERT_EQ(shared().limiter.acquire(1, 2), 2U);
  ASSERT_TRUE(shared().claimed.try_push(claimed(1, 1)));
  ASSERT_TRUE(shared().claimed.try_push(claimed(2, 1)));
  step();
  handler.started[0].second(Outcome::done());
  EXPECT_EQ(shared().flow->in_pool(*pool), 1U);
  EXPECT_EQ(told, 1) << "a type waits for it";
  EXPECT_EQ(shared().limiter.running(), 2U);
  EXPECT_EQ(shared().flow->used(1), 2U) << "max_running counts until the outcome is written";
  handler.started[1].second(Outcome::not_started(1s));
  EXPECT_EQ(shared().flow->in_pool(*pool), 1U) << "it goes back with the claim";
  store.on_finish = [](std::span<const FinishRequest> requests) {
    return std::vector<FinishReply>(requests.size(), FinishReply::applied);
  };
  Finisher finisher(shared(), store, 42);
  finisher.step(now);
  EXPECT_EQ(shared().flow->in_pool(*pool), 0U);
  EXPECT_EQ(shared().flow->used(1), 0U);
  EXPECT_EQ(shared().limiter.running(), 0U);
}

TEST_F(RunnerTest, KeepsTheJobAsLongAsItsHandlerRuns) {
  give(claimed(1, 1));
  step();
  EXPECT_EQ(handler.started[0].first->job.type_id, 1);
  handler.started[0].second(Outcome::done());
  EXPECT_EQ(outcomes().at(0).claimed.get(), handler.started[0].first);
}

TEST_F(RunnerTest, ReleasesUnstartedJobsWhenTheNodeDrains) {
  give(claimed(1, 1));
  shared().membership.begin_drain();
  step();
  EXPECT_TRUE(handler.started.empty());
  const auto runs = outcomes();
  ASSERT_EQ(runs.size(), 1U);
  EXPECT_TRUE(runs[0].is_released);
}

TEST_F(RunnerTest, ReleasesJobsWhoseLeaseHasEnded) {
  ClaimedJob job = claimed(1, 1);
  job.lease_deadline = now;
  give(job);
  step();
  EXPECT_TRUE(handler.started.empty());
  const auto runs = outcomes();
  ASSERT_EQ(runs.size(), 1U);
  EXPECT_TRUE(runs[0].is_released);
  EXPECT_EQ(events[Counter::expired_starts], 1);
}

TEST_F(RunnerTest, ReleasesJobsClaimedBeforeTheStartWindow) {
  ClaimedJob job = claimed(1, 1);
  job.start_by = now;
  give(job);
  step();
  EXPECT_TRUE(handler.started.empty());
  const auto runs = outcomes();
  ASSERT_EQ(runs.size(), 1U);
  EXPECT_TRUE(runs[0].is_released);
}

TEST_F(RunnerTest, LeavesTheAttemptHalfOfTheRestOfItsLease) {
  ClaimedJob free = claimed(1, 1), bounded = claimed(2, 1);
  free.lease_deadline = bounded.lease_deadline = now + 2s;
  bounded.start_by = now + 500ms;
  give(free);
  give(bounded);
  step();
  ASSERT_EQ(handler.started.size(), 2U);
  EXPECT_EQ(handler.started[0].first->start_by, now + 1s);
  EXPECT_EQ(handler.started[1].first->start_by, now + 500ms);
}

TEST_F(RunnerTest, ReleasesJobsOfTypesWithoutAHandlerHere) {
  give(claimed(1, 2));
  give(claimed(2, 99));
  step();
  const auto runs = outcomes();
  ASSERT_EQ(runs.size(), 2U);
  for (const FinishedAttempt& run : runs) {
    EXPECT_EQ(run.outcome.kind, Outcome::Kind::not_started);
    EXPECT_GT(run.outcome.retry_after.value_or(0s), 0s);
  }
}

TEST_F(RunnerTest, StepsAgainAtOnceWhenMoreWait) {
  for (JobId id = 1; id <= 300; ++id) give(claimed(id, 1));
  EXPECT_LE(step(), now);
  EXPECT_EQ(step(), kWhenWoken);
  EXPECT_EQ(handler.started.size(), 300U);
}

}  // namespace
}  // namespace tocsin

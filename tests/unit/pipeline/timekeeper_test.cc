#include "pipeline/timekeeper.h"

#include <gtest/gtest.h>

#include "unit/pipeline/stage_fixture.h"

namespace tocsin {
namespace {

class TimekeeperTest : public StageFixture {
 protected:
  Timekeeper& timekeeper() {
    if (!timekeeper_) timekeeper_.emplace(shared());
    return *timekeeper_;
  }
  void give(JobId id, WallTime fire_at) {
    shared().known.add(id, 1);
    ASSERT_TRUE(shared().candidates.try_push({id, 1, fire_at}));
  }
  MonoTime step() { return timekeeper().step(now); }
  std::vector<JobId> due() {
    set_types({biz_type(1, "noop")});
    const auto catalog = shared().catalog.get();
    std::vector<JobId> ids;
    for (const Candidate& job : shared().admission.next_batch(1'000'000, {*catalog, db_now(), now}).jobs) {
      ids.push_back(job.job_id);
    }
    return ids;
  }

 private:
  std::optional<Timekeeper> timekeeper_;
};

TEST_F(TimekeeperTest, WaitsUntilTheTimeIsKnown) {
  give(1, kStart);
  EXPECT_GT(step(), now);
  EXPECT_EQ(shared().candidates.size(), 1U) << "still there for later";
}

TEST_F(TimekeeperTest, WakesExactlyWhenAJobIsDueAndGivesItThen) {
  know_time();
  give(1, kStart + 2s + 300us);
  const MonoTime wake = step();
  EXPECT_GE(wake - now, 2s + 300us);
  EXPECT_LE(wake - now, 2s + 300us + config.tick);
  EXPECT_TRUE(due().empty());
  now = wake - 1us;
  EXPECT_EQ(step(), wake);
  EXPECT_TRUE(due().empty());
  now = wake;
  EXPECT_EQ(step(), kWhenWoken);
  EXPECT_EQ(due(), std::vector<JobId>{1});
}

TEST_F(TimekeeperTest, GivesOverdueJobsWithinATick) {
  know_time();
  give(1, kStart - 1h);
  const MonoTime wake = step();
  EXPECT_LE(wake - now, config.tick);
  now = wake;
  step();
  EXPECT_EQ(due(), std::vector<JobId>{1});
}

TEST_F(TimekeeperTest, ForgetsAndCountsJobsThatTheWheelRefuses) {
  know_time();
  give(1, kStart + 1h);
  step();
  EXPECT_FALSE(shared().known.contains(1));
  EXPECT_EQ(events[Counter::refused], 1);
}

TEST_F(TimekeeperTest, ReachesTheWholeLookaheadAfterALongIdleTime) {
  know_time();
  give(1, kStart + 1ms);
  step();
  now += 1h;
  step();
  now += 1h;
  give(2, db_now() + config.lookahead);
  step();
  EXPECT_TRUE(shared().known.contains(2)) << "the wheel has refused nothing";
}

TEST_F(TimekeeperTest, StepsAgainAtOnceWhenMoreCandidatesWait) {
  know_time();
  for (JobId id = 1; id <= 10'000; ++id) give(id, kStart + 1s);
  EXPECT_LE(step(), now);
  EXPECT_GT(step(), now);
  EXPECT_EQ(shared().known.size(), 10'000U) << "the wheel has refused nothing";
}

TEST_F(TimekeeperTest, NothingFiresEarlyWhenTheClockIsSetBack) {
  know_time();
  now += 10s;
  step();
  give(1, db_now() + 1s);
  step();
  const WallTime fire_at = db_now() + 1s;
  step_database_clock(-3s);
  know_time();
  step();
  EXPECT_TRUE(due().empty());
  EXPECT_TRUE(shared().known.contains(1)) << "four seconds away, within reach";
  while (db_now() < fire_at) {
    ASSERT_TRUE(due().empty());
    now += 100ms;
    step();
  }
  now += config.tick;
  step();
  EXPECT_EQ(due(), std::vector<JobId>{1});
}

TEST_F(TimekeeperTest, ForgetsJobsBeyondTheWheelAfterTheClockWasSetBack) {
  know_time();
  now += 10s;
  give(1, db_now() + 1s);
  step();
  step_database_clock(-1h);
  know_time();
  step();
  EXPECT_FALSE(shared().known.contains(1));
}

TEST_F(TimekeeperTest, NeverHoldsMoreDueJobsThanItsCapacity) {
  config.capacity = 4;
  know_time();
  // A job that was moved comes once more for every move.
  for (int round = 0; round < 3; ++round) {
    for (JobId id = 1; id <= 3; ++id) {
      shared().known.add(id, 1);
      shared().candidates.try_push({id, 1, kStart});
    }
    step();
    now += 1ms;
    step();
  }
  EXPECT_LE(shared().due.size(), 4U);
}

TEST_F(TimekeeperTest, RestsWhileTheNodeDrains) {
  know_time();
  shared().membership.begin_drain();
  give(1, kStart);
  EXPECT_EQ(step(), kWhenWoken);
  EXPECT_TRUE(due().empty());
}

}  // namespace
}  // namespace tocsin

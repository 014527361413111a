#include "pipeline/lease_reaper.h"

#include "unit/pipeline/finisher_fixture.h"

namespace tocsin {
namespace {

class LeaseReaperTest : public StageFixture {
 protected:
  void give(std::vector<JobId> jobs) { shared().expired.push_some(jobs); }
  MonoTime step() { return reaper_->step(now); }

 private:
  std::unique_ptr<LeaseReaper> reaper_ = std::make_unique<LeaseReaper>(shared(), store);
};

TEST_F(LeaseReaperTest, MarksABatchDeadAndCountsTheRowsFound) {
  give({1, 2, 3});
  store.on_bury = [](std::span<const JobId> jobs) {
    EXPECT_EQ(jobs.size(), 3U);
    return 2;
  };
  EXPECT_LE(step(), now);
  EXPECT_EQ(events[Counter::marked_dead], 2);
  EXPECT_EQ(step(), kWhenWoken);
}

TEST_F(LeaseReaperTest, SplitsARefusedBatchUntilTheRowIsAlone) {
  give({1, 2, 3, 4, 5, 6, 7});
  int marked_dead = 0;
  store.on_bury = [&](std::span<const JobId> jobs) -> Result<int> {
    if (std::ranges::count(jobs, 5) > 0) return Error{ErrorCode::invalid, "not this one", ""};
    marked_dead += static_cast<int>(jobs.size());
    return static_cast<int>(jobs.size());
  };
  for (int steps = 0; steps < 30; ++steps) now = std::min(step(), now + 1s);
  EXPECT_EQ(marked_dead, 6);
  EXPECT_EQ(events[Counter::marked_dead], 6);
  EXPECT_EQ(step(), kWhenWoken);
}

TEST_F(LeaseReaperTest, LeavesJobsToTheNextScanWhenTheStoreIsUnavailable) {
  give({1});
  store.on_bury = [](auto) { return unavailable(); };
  EXPECT_EQ(step(), now + config.retry_pause);
  EXPECT_EQ(events.failures(), 1);
  EXPECT_EQ(step(), kWhenWoken);
}

TEST_F(LeaseReaperTest, RestsWhileTheNodeDrains) {
  give({1});
  shared().membership.begin_drain();
  EXPECT_EQ(step(), kWhenWoken);
  EXPECT_EQ(store.calls, 0);
}

// A database that comes back finds the outcomes of jobs whose leases have ended, too.
TEST_F(LeaseReaperTest, WaitsForOutcomesThatTheDatabaseDidNotAnswer) {
  give({1});
  shared().too_late.try_push({{0, 1}, kStart});
  shared().answers.note_request(now);
  now += config.lease_margin + 1ms;
  EXPECT_EQ(step(), now + config.retry_pause);
  EXPECT_EQ(store.calls, 0);
  shared().answers.note_answer();
  store.on_bury = [](std::span<const JobId>) { return 1; };
  EXPECT_LE(step(), now);
  EXPECT_EQ(events[Counter::marked_dead], 1);
}

}  // namespace
}  // namespace tocsin

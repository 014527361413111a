#include "pipeline/lease_reaper.h"

#include <numeric>
#include <string>

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
  store.on_mark_dead = [](std::span<const JobId> jobs) {
    EXPECT_EQ(jobs.size(), 3U);
    return 2;
  };
  EXPECT_LE(step(), now);
  EXPECT_EQ(events[Counter::marked_dead], 2);
  EXPECT_EQ(step(), kWhenWoken);
}

// A job whose claim was not answered, and whose lease has ended meanwhile, has not started.
TEST_F(LeaseReaperTest, MarksNoJobDeadWhileAClaimIsInDoubt) {
  give({1});
  int calls = 0;
  store.on_mark_dead = [&](auto) { return ++calls; };
  shared().claims_in_doubt.add();
  EXPECT_EQ(step(), now + shared().config.retry_pause);
  shared().claims_in_doubt.resolve();
  EXPECT_EQ(step(), now + shared().config.retry_pause);
  EXPECT_EQ(calls, 0) << "the release of the job is on its way to the database";
  now += 5s;
  step();
  EXPECT_EQ(calls, 1);
}

TEST_F(LeaseReaperTest, SplitsARefusedBatchUntilTheRowIsAlone) {
  give({1, 2, 3, 4, 5, 6, 7});
  int marked_dead = 0;
  store.on_mark_dead = [&](std::span<const JobId> jobs) -> Result<int> {
    if (std::ranges::count(jobs, 5) > 0) return Error{ErrorCode::invalid, "not this one", ""};
    marked_dead += static_cast<int>(jobs.size());
    return static_cast<int>(jobs.size());
  };
  for (int steps = 0; steps < 30; ++steps) now = std::min(step(), now + 1s);
  EXPECT_EQ(marked_dead, 6);
  EXPECT_EQ(events[Counter::marked_dead], 6);
  EXPECT_EQ(step(), kWhenWoken);
}

// A trigger that fails on the table of dead jobs, or a missing right there. Each scan finds the rows again.
TEST_F(LeaseReaperTest, ManyRefusedJobsHoldUpNoOthers) {
  std::vector<JobId> refused(50);
  std::iota(refused.begin(), refused.end(), 1);
  std::vector<JobId> marked_dead;
  int refusals = 0;
  store.on_mark_dead = [&](std::span<const JobId> jobs) -> Result<int> {
    now += 1ms;
    if (jobs.front() <= std::ssize(refused)) {
      ++refusals;
      return Error{ErrorCode::unavailable, "the trigger fails", kRefused};
    }
    marked_dead.insert(marked_dead.end(), jobs.begin(), jobs.end());
    return static_cast<int>(jobs.size());
  };
  for (JobId other = 101; other <= 130; ++other) {  // one scan per second
    give(refused);
    give({other});
    const MonoTime next_scan = now + 1s;
    while (now < next_scan) now = std::max(now, std::min(step(), next_scan));
    ASSERT_EQ(marked_dead.size(), static_cast<std::size_t>(other - 100)) << "before the next scan";
  }
  EXPECT_EQ(shared().expired.size(), 0U);
  EXPECT_GT(refusals, 3 * std::ssize(refused)) << "each is tried again";
  EXPECT_LT(refusals, 8 * std::ssize(refused)) << "but not with every scan";
}

TEST_F(LeaseReaperTest, ExhaustedJobsAndTooLateLanesTakeTurns) {
  constexpr int kTooLateRows = 2000;
  give({1, 2, 3, 4});
  shared().too_late.try_push({{0, 1}, kStart});
  std::string calls;
  store.on_mark_dead = [&](std::span<const JobId>) -> Result<int> {
    calls += 'e';
    return Error{ErrorCode::unavailable, "the trigger fails", kRefused};
  };
  int left = kTooLateRows;
  store.on_drop_too_late = [&](Lane, WallTime, int limit, int) {
    calls += 'l';
    const int n = std::min(limit, left);
    left -= n;
    return n;
  };
  for (int i = 0; i < 6; ++i) EXPECT_EQ(step(), now);
  EXPECT_EQ(calls, "elelel");
}

TEST_F(LeaseReaperTest, ATooLateRowThatIsRefusedHoldsUpNoExhaustedJobs) {
  shared().too_late.try_push({{0, 1}, kStart});
  int marked_dead = 0, found = 0;
  bool is_alone = false;
  store.on_mark_dead = [&](std::span<const JobId> jobs) {
    marked_dead += static_cast<int>(jobs.size());
    return static_cast<int>(jobs.size());
  };
  store.on_drop_too_late = [&](Lane, WallTime, int limit, int) -> Result<int> {
    give({++found});
    is_alone = limit == 1;
    return Error{ErrorCode::unavailable, "the trigger fails", kRefused};
  };
  for (int calls = 0; !is_alone && calls < 100; ++calls) EXPECT_EQ(step(), now);
  EXPECT_EQ(step(), now);
  EXPECT_EQ(marked_dead, found);
  EXPECT_EQ(step(), now + config.retry_pause) << "the rows behind it wait";
}

TEST_F(LeaseReaperTest, LeavesJobsToTheNextScanWhenTheStoreIsUnavailable) {
  give({1});
  store.on_mark_dead = [](auto) { return unavailable(); };
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
  store.on_mark_dead = [](std::span<const JobId>) { return 1; };
  EXPECT_LE(step(), now);
  EXPECT_EQ(events[Counter::marked_dead], 1);
}

}  // namespace
}  // namespace tocsin

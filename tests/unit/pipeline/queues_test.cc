// The queues and limits between the stages.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "admission/admission.h"
#include "admission/concurrency_limiter.h"
#include "pipeline/known_jobs.h"
#include "unit/pipeline/stage_fixture.h"

namespace tocsin {
namespace {

TEST(KnownJobs, TakesAJobOnce) {
  KnownJobs known(10);
  EXPECT_EQ(known.add(1, 5), KnownJobs::Added::yes);
  EXPECT_EQ(known.add(1, 5), KnownJobs::Added::already_known);
  EXPECT_TRUE(known.contains(1));
  known.remove(1);
  EXPECT_FALSE(known.contains(1));
  EXPECT_EQ(known.add(1, 5), KnownJobs::Added::yes);
}

TEST(KnownJobs, LeavesAHintBeyondTheHorizonToTheScanWhenHalfOfTheShareIsUsed) {
  using enum KnownJobs::Hint;
  KnownJobs known(100);
  JobId id = 0;
  const auto offer = [&](Duration in) { return known.offer_hint({++id, 1, kStart + in}); };
  known.set_horizon(kStart + 2s);
  EXPECT_EQ(offer(3s), entered) << "memory is ample";
  while (known.fill(1) < KnownJobs::kAmple) EXPECT_EQ(offer(1s), entered);
  EXPECT_EQ(offer(2001ms), left_to_scan);
  EXPECT_EQ(offer(2s), entered);
  EXPECT_EQ(known.offer_hint({1, 1, kStart + 4s}), entered) << "the job was moved";
  known.raise_horizon(kStart + 1s);
  EXPECT_EQ(offer(2s), entered) << "it is no later than the horizon was";
  known.raise_horizon(WallTime::max());
  EXPECT_EQ(offer(1h), entered);
  EXPECT_FALSE(known.take_refused()) << "memory had capacity";
}

TEST(KnownJobs, ReportsTheFirstHintRefusedAtFullLookahead) {
  using enum KnownJobs::Hint;
  KnownJobs known(8);
  JobId id = 0;
  while (known.add(++id, 1) == KnownJobs::Added::yes) continue;
  const Candidate hint{100, 1, kStart};
  EXPECT_EQ(known.offer_hint(hint), first_full);
  EXPECT_EQ(known.offer_hint(hint), full);
  EXPECT_TRUE(known.take_refused());
  EXPECT_FALSE(known.take_refused());
  known.set_horizon(kStart + 2s);
  EXPECT_EQ(known.offer_hint(hint), full) << "the lookahead is short already";
  EXPECT_TRUE(known.take_refused());
}

TEST(KnownJobs, ReportsAnEarlierTimeOfAKnownJob) {
  KnownJobs known(10);
  const WallTime later(std::chrono::seconds(20)), earlier(std::chrono::seconds(10));
  EXPECT_EQ(known.add(1, 5, later), KnownJobs::Added::yes);
  EXPECT_EQ(known.add(1, 5, earlier), KnownJobs::Added::moved);
  EXPECT_EQ(known.add(1, 5, earlier), KnownJobs::Added::already_known);
  EXPECT_EQ(known.add(1, 5, later), KnownJobs::Added::already_known);
  EXPECT_EQ(known.size(), 1U);
}

TEST(KnownJobs, OneTypeGetsThreeQuartersAtMost) {
  KnownJobs known(8);
  for (JobId id = 1; id <= 6; ++id) ASSERT_EQ(known.add(id, 1), KnownJobs::Added::yes);
  EXPECT_EQ(known.add(7, 1), KnownJobs::Added::full);
  EXPECT_EQ(known.available(1), 0U);
  EXPECT_EQ(known.available(2), 1U);
  EXPECT_EQ(known.add(7, 2), KnownJobs::Added::yes);
  EXPECT_EQ(known.add(8, 3), KnownJobs::Added::yes);
  EXPECT_EQ(known.add(9, 4), KnownJobs::Added::full);
  EXPECT_EQ(known.size(), 8U);
}

TEST(KnownJobs, FortyHotTypesLeaveCapacityForAnotherType) {
  KnownJobs known(100'000);
  JobId id = 0;
  for (TypeId type = 1; type <= 40; ++type)
    while (known.add(++id, type) == KnownJobs::Added::yes) {
    }
  EXPECT_EQ(100'000 - known.size(), 242U);
  EXPECT_GT(known.available(41), 0U);
  EXPECT_EQ(known.available(40), 0U);
}

TEST(KnownJobs, ReturnsCapacityToTheTypeThatHeldIt) {
  KnownJobs known(4);
  for (JobId id = 1; id <= 3; ++id) ASSERT_EQ(known.add(id, 1), KnownJobs::Added::yes);
  const std::vector<Candidate> gone{{1, 1, {}}, {2, 1, {}}, {99, 1, {}}};
  known.remove(gone);
  known.remove(99);
  EXPECT_EQ(known.size(), 1U);
  EXPECT_EQ(known.available(1), 2U);
}

TEST(ConcurrencyLimiter, OneTypeAloneGetsHalf) {
  ConcurrencyLimiter limiter(4096);
  EXPECT_EQ(limiter.acquire(1, 100), 100U);
  EXPECT_EQ(limiter.acquire(1, 10'000), 1948U);
  EXPECT_EQ(limiter.acquire(1, 1), 0U);
  EXPECT_EQ(limiter.running(1), 2048U);
  EXPECT_EQ(limiter.running(), 2048U);
}

TEST(ConcurrencyLimiter, TypesThatComeOneAfterTheOtherLeaveSlotsForThoseThatFollow) {
  ConcurrencyLimiter limiter(4096);
  for (TypeId type = 1; type <= 40; ++type) EXPECT_GT(limiter.acquire(type, 4096), 0U) << type;
  EXPECT_EQ(4096 - limiter.running(), 63U);
  EXPECT_GT(limiter.acquire(1000, 1), 0U) << "for a healthy type, however many came before";
}

// Slots stay free for types that come later: no slot is taken back.
TEST(ConcurrencyLimiter, AllThatWaitConvergeToEqualParts) {
  const auto expect_free = [](TypeId types, std::size_t free) {
    ConcurrencyLimiter limiter(4096);
    for (int round = 0; round < 60; ++round) {
      for (TypeId type = 1; type <= types; ++type) {
        limiter.release(type, limiter.running(type) / 4);  // a few of them end
        limiter.acquire(type, 4096);
      }
    }
    const double part = static_cast<double>(limiter.running()) / types;
    for (TypeId type = 1; type <= types; ++type)
      EXPECT_NEAR(static_cast<double>(limiter.running(type)), part, std::max(1.0, part * 0.45)) << type;
    EXPECT_EQ(4096 - limiter.running(), free) << types;
  };
  expect_free(1, 2048);
  expect_free(8, 904);
  expect_free(20, 599);
  expect_free(200, 170);
}

TEST(ConcurrencyLimiter, TheLastSlotsGoToTypesThatHaveNone) {
  ConcurrencyLimiter limiter(10);
  ASSERT_EQ(limiter.acquire(1, 10), 5U);
  for (TypeId type = 2; type <= 5; ++type) EXPECT_EQ(limiter.acquire(type, 5), 1U) << type;
  EXPECT_EQ(limiter.acquire(2, 1), 0U);
  EXPECT_EQ(limiter.acquire(6, 1), 1U);
  EXPECT_EQ(limiter.acquire(7, 1), 0U);
}

TEST(ConcurrencyLimiter, NotifiesOfEveryReleaseOutsideItsLock) {
  ConcurrencyLimiter gate(10);
  int told = 0;
  gate.on_release([&] { told += gate.running() < 5; });  // reads it: a lock held here would never return
  ASSERT_EQ(gate.acquire(1, 10), 5U);
  gate.release(1, 0);
  EXPECT_EQ(told, 0);
  gate.release(1, 1);
  EXPECT_EQ(told, 1);
}

class DueQueueTest : public ::testing::Test {
 protected:
  void push(TypeId type, int n) {
    std::vector<Candidate> jobs;
    for (int i = 0; i < n; ++i) jobs.push_back({++last_id_, type, kStart});
    queue.push(jobs);
  }
  DueBatch pop(std::size_t most, ClaimerRole role = ClaimerRole::primary) {
    return admission.next_batch(most, {catalog, now, {}}, role);
  }

  TypeCatalog catalog = TypeCatalog({biz_type(1), biz_type(2), biz_type(3), biz_type(4, "noop"), biz_type(5, "noop")});
  WallTime now = kStart;
  ConcurrencyLimiter limiter = ConcurrencyLimiter(10'000);
  FlowControl flow;
  PollQueue polls{10};
  DueQueue queue;
  JobAdmission admission{queue, polls, flow, limiter, 100'000, 64, 5s};

 private:
  JobId last_id_ = 0;
};

std::map<TypeId, std::size_t> by_type(const DueBatch& batch) {
  std::map<TypeId, std::size_t> n;
  for (const Candidate& job : batch.jobs) ++n[job.type_id];
  return n;
}

TEST_F(DueQueueTest, GivesJobsOfATypeInTheOrderTheyCame) {
  push(1, 5);
  const DueBatch batch = pop(3);
  ASSERT_EQ(batch.jobs.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(batch.jobs[i].job_id, static_cast<JobId>(i + 1));
  EXPECT_EQ(queue.size(), 2U);
  EXPECT_EQ(limiter.running(1), 3U);
}

TEST_F(DueQueueTest, FloodedTypesShareTheirBatches) {
  push(1, 10'000);
  push(2, 100);
  push(3, 100);
  const auto n = by_type(pop(90));
  EXPECT_EQ(n.at(1), 30U);
  EXPECT_EQ(n.at(2), 30U);
  EXPECT_EQ(n.at(3), 30U);
}

TEST_F(DueQueueTest, ABlockedTypeDoesNotReduceOtherShares) {
  BizType shut = biz_type(2);
  shut.pool = pool_of(0);
  catalog = TypeCatalog({biz_type(1), shut});
  push(1, 10'000);
  push(2, 10'000);
  EXPECT_EQ(by_type(pop(90)), (std::map<TypeId, std::size_t>{{1, 90}}));
}

TEST_F(DueQueueTest, LightTypesNeverShareABatchWithAHotType) {
  push(1, 10'000);
  push(2, 30);
  std::map<TypeId, std::size_t> served;
  for (int i = 0; i < 3; ++i) {
    const auto n = by_type(pop(90));
    EXPECT_EQ(n.size(), 1U);
    for (const auto& [type, count] : n) served[type] += count;
  }
  EXPECT_EQ(served.at(2), 30U) << "within three batches";
}

TEST_F(DueQueueTest, TheSecondaryClaimerPrefersLightTypesWithDueJobs) {
  push(1, 10'000);
  EXPECT_EQ(pop(90, ClaimerRole::secondary).jobs.size(), 90U);
  push(2, 1);
  EXPECT_EQ(by_type(pop(90, ClaimerRole::priority)), (std::map<TypeId, std::size_t>{{2, 1}}));
  const DueBatch none = pop(90, ClaimerRole::secondary);
  EXPECT_TRUE(none.empty());
  EXPECT_TRUE(none.is_limited_to_light);
  EXPECT_EQ(pop(90).jobs.size(), 90U);
  push(2, 1);
  EXPECT_EQ(by_type(pop(90, ClaimerRole::secondary)), (std::map<TypeId, std::size_t>{{2, 1}}));
  now += 1s;
  EXPECT_EQ(pop(90, ClaimerRole::secondary).jobs.size(), 90U);
}

TEST_F(DueQueueTest, LightJobsDoNotResetTheTurnOrderOfBacklogs) {
  for (const TypeId type : {1, 2}) queue.push_backlog({{0, type}, kStart});
  std::map<TypeId, int> served;
  for (int i = 0; i < 40; ++i) {
    push(3, 1);
    const DueBatch batch = pop(10);
    if (!batch.backlog) continue;
    ++served[batch.backlog->lane.type_id];
    queue.put_back(*batch.backlog);
  }
  EXPECT_EQ(served[1], served[2]);
  EXPECT_GT(served[1], 0);
}

TEST_F(DueQueueTest, ThePriorityClaimerServesOnlyLightTypes) {
  push(1, 10'000);
  EXPECT_TRUE(pop(90, ClaimerRole::priority).empty());
  push(2, 64);
  EXPECT_EQ(by_type(pop(90, ClaimerRole::priority)), (std::map<TypeId, std::size_t>{{2, 64}}));
  push(2, 65);
  EXPECT_TRUE(pop(90, ClaimerRole::priority).empty()) << "now it is hot, too";
  queue.push_backlog({{0, 3}, kStart});
  EXPECT_TRUE(pop(90, ClaimerRole::priority).empty());
}

TEST_F(DueQueueTest, EveryTypeIsServedWithinAsManyBatchesAsThereAreTypes) {
  push(1, 1000);
  push(2, 1000);
  push(3, 1000);
  std::map<TypeId, std::size_t> served;
  for (int i = 0; i < 9; ++i) {
    for (const auto& [type, n] : by_type(pop(1))) served[type] += n;
  }
  EXPECT_EQ(served, (std::map<TypeId, std::size_t>{{1, 3}, {2, 3}, {3, 3}}));
}

TEST_F(DueQueueTest, InstantTypesAndOthersNeverShareABatch) {
  push(1, 10);
  push(4, 10);
  push(5, 10);
  std::size_t taken = 0;
  while (taken < 30) {
    const DueBatch batch = pop(100);
    ASSERT_FALSE(batch.jobs.empty());
    taken += batch.jobs.size();
    for (const Candidate& job : batch.jobs) EXPECT_EQ(job.type_id >= 4, batch.is_instant);
  }
  EXPECT_EQ(limiter.running(), 10U) << "instant types need no slot";
}

TEST_F(DueQueueTest, ATypeWithoutPermitsWaitsAndDelaysNoOther) {
  BizType limited = biz_type(1);
  limited.max_running = 3;
  catalog = TypeCatalog({limited, biz_type(2)});
  push(1, 10);
  push(2, 5);
  EXPECT_EQ(by_type(pop(100)), (std::map<TypeId, std::size_t>{{1, 3}, {2, 5}}));
  EXPECT_TRUE(pop(100).empty());
  EXPECT_EQ(queue.size(), 7U);
  flow.return_all(1, 1);
  limiter.release(1, 1);
  EXPECT_EQ(by_type(pop(100)).at(1), 1U);
}

TEST_F(DueQueueTest, ATypeAtItsShareOfTheNodeWaitsAndDelaysNoOther) {
  ASSERT_EQ(flow.take(biz_type(1), 5'000, Pace::fresh, {}).n, 5'000U);
  ASSERT_EQ(limiter.acquire(1, 5'000), 5'000U);
  push(1, 10);
  push(2, 10);
  EXPECT_EQ(by_type(pop(100)), (std::map<TypeId, std::size_t>{{2, 10}}));
}

TEST_F(DueQueueTest, DropsJobsOfTypesThatArePausedOrGone) {
  BizType paused = biz_type(1);
  paused.paused = true;
  catalog = TypeCatalog({paused, biz_type(2)});
  push(1, 3);
  push(9, 2);
  push(2, 1);
  queue.push_backlog({{0, 1}, kStart});
  const DueBatch batch = pop(100);
  EXPECT_EQ(by_type(batch), (std::map<TypeId, std::size_t>{{2, 1}}));
  EXPECT_EQ(batch.dropped.size(), 5U);
  EXPECT_EQ(queue.size(), 0U);
  EXPECT_FALSE(queue.has_backlog({0, 1})) << "found again when the type resumes";
}

// While a round drops jobs, nothing is pushed or claimed.
TEST_F(DueQueueTest, AHotTypeLeavesMemoryInSteps) {
  const auto expect_steps = [&](const BizType& type) {
    catalog = TypeCatalog({type});
    std::vector<Candidate> jobs;
    for (JobId i = 1; i <= 10'000; ++i) jobs.push_back({make_job_id(i, 0), 1, kStart});
    queue.push(jobs);
    for (int round = 0; round < 20 && queue.size() > 0; ++round) {
      const DueBatch batch = pop(10);
      EXPECT_LE(batch.dropped.size(), 2'000U);
      EXPECT_TRUE(batch.has_more_to_drop || !batch.empty() || queue.size() == 0) << "the claimer continues at once";
      if (batch.backlog) queue.put_back(*batch.backlog);
    }
    EXPECT_EQ(queue.size(), 0U);
  };
  BizType paused = biz_type(1);
  paused.paused = true;
  expect_steps(paused);
  queue.push_backlog({{0, 1}, {}});
  expect_steps(biz_type(1));
}

TEST_F(DueQueueTest, ALaneIsInTheBacklogAtMostOnceAlsoWhileItIsClaimed) {
  const Backlog lane{{7, 1}, kStart};
  queue.push_backlog(lane);
  queue.push_backlog(lane);
  EXPECT_EQ(queue.backlog_lanes(), 1U);
  const DueBatch batch = pop(10);
  ASSERT_TRUE(batch.backlog);
  EXPECT_EQ(batch.backlog->lane, lane.lane);
  EXPECT_EQ(batch.limit, 10U);
  EXPECT_TRUE(queue.has_backlog(lane.lane));
  queue.push_backlog(lane);
  EXPECT_TRUE(pop(10).empty());
  queue.put_back(lane);
  EXPECT_TRUE(pop(10).backlog);
  queue.end_backlog(lane);
  EXPECT_FALSE(queue.has_backlog(lane.lane));
}

TEST_F(DueQueueTest, FreshJobsAndBacklogTakeTurns) {
  push(1, 1000);
  queue.push_backlog({{0, 1}, kStart});
  int backlogs = 0;
  for (int i = 0; i < 10; ++i) {
    const DueBatch batch = pop(10);
    ASSERT_FALSE(batch.empty());
    EXPECT_TRUE(batch.jobs.empty() || !batch.backlog);
    if (batch.backlog) {
      ++backlogs;
      queue.put_back(*batch.backlog);
    }
  }
  EXPECT_EQ(backlogs, 5);
}

TEST_F(DueQueueTest, BacklogLanesOfATypeAndTypesOfABacklogTakeTurns) {
  for (const Shard shard : {Shard{0}, Shard{1}}) {
    for (const TypeId type : {1, 2}) queue.push_backlog({{shard, type}, kStart});
  }
  std::map<Lane, int> served;
  for (int i = 0; i < 8; ++i) {
    const DueBatch batch = pop(10);
    ASSERT_TRUE(batch.backlog);
    ++served[batch.backlog->lane];
    queue.put_back(*batch.backlog);
  }
  ASSERT_EQ(served.size(), 4U);
  for (const auto& [lane, n] : served) EXPECT_EQ(n, 2);
}

TEST_F(DueQueueTest, ABacklogGetsNoMoreThanThereAreSlots) {
  ASSERT_EQ(limiter.acquire(1, 4'997), 4'997U);
  queue.push_backlog({{0, 1}, kStart});
  EXPECT_EQ(pop(10).limit, 3U);
  EXPECT_EQ(limiter.running(), 5'000U);
  queue.push_backlog({{1, 1}, kStart});
  EXPECT_TRUE(pop(10).empty());
  EXPECT_TRUE(queue.has_backlog({1, 1})) << "it waits for a slot";
}

}  // namespace
}  // namespace tocsin

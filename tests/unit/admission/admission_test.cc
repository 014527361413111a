// What starts next when types, endpoints and forms of claims compete.
#include "admission/admission.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>

#include "unit/pipeline/stage_fixture.h"

namespace tocsin {
namespace {

class AdmissionTest : public ::testing::Test {
 protected:
  void push(TypeId type, int n) {
    std::vector<Candidate> jobs;
    for (int i = 0; i < n; ++i) jobs.push_back({++last_id_, type, kStart});
    queue.push(jobs);
  }
  DueBatch next(ClaimerRole role = ClaimerRole::primary) {
    return admission.next_batch(500, {catalog, kStart, now}, role);
  }
  void end(TypeId type, std::size_t n) {
    flow.return_all(type, n);
    limiter.release(type, n);
  }
  // Takes batches until there is nothing more that may start.
  std::map<TypeId, std::size_t> take_all() {
    std::map<TypeId, std::size_t> taken;
    for (DueBatch batch = next(); !batch.empty() || batch.has_more_to_drop; batch = next()) {
      for (const Candidate& job : batch.jobs) ++taken[job.type_id];
      if (!batch.backlog) continue;
      taken[batch.backlog->lane.type_id] += batch.limit;
      queue.put_back(*batch.backlog);
    }
    return taken;
  }

  MonoTime now{};
  TypeCatalog catalog;
  ConcurrencyLimiter limiter{4096};
  FlowControl flow;
  PollQueue polls{10};
  DueQueue queue;
  JobAdmission admission{queue, polls, flow, limiter, 100'000, 64, 5s};

 private:
  JobId last_id_ = 0;
};

TEST_F(AdmissionTest, AThousandInstantTypesDelayAnotherByOneBatch) {
  std::vector<BizType> types{biz_type(5000)};
  for (TypeId type = 1; type <= 1000; ++type) types.push_back(biz_type(type, "noop"));
  catalog = TypeCatalog(types);
  for (int round = 0; round < 20; ++round) {
    for (TypeId type = 1; type <= 1000; ++type) push(type, 3);
    push(5000, 1);
    int instant = 0;
    for (DueBatch batch = next(); batch.is_instant; batch = next(), ++instant) EXPECT_LE(batch.jobs.size(), 500U);
    EXPECT_LE(instant, 1);
  }
  EXPECT_EQ(EngineConfig{}.claim_batch, 500U);
}

TEST_F(AdmissionTest, ThePriorityClaimerIsSoonFreeBesideManyLightTypes) {
  std::vector<BizType> types{biz_type(5000)};
  for (TypeId type = 1; type <= 1000; ++type) types.push_back(biz_type(type, "noop"));
  catalog = TypeCatalog(types);
  for (TypeId type = 1; type <= 1000; ++type) push(type, 1);
  EXPECT_EQ(next(ClaimerRole::priority).jobs.size(), 64U);
  EXPECT_EQ(next(ClaimerRole::secondary).jobs.size(), 500U) << "the others do the bulk";
  push(5000, 1);
  const DueBatch batch = next(ClaimerRole::priority);
  ASSERT_EQ(batch.jobs.size(), 1U);
  EXPECT_EQ(batch.jobs[0].type_id, 5000);
}

TEST_F(AdmissionTest, EveryTypeOfAFormIsServedOnceBeforeAnyIsServedAgain) {
  std::vector<BizType> types;
  for (TypeId type = 1; type <= 1200; ++type) types.push_back(biz_type(type, "noop"));
  catalog = TypeCatalog(types);
  for (TypeId type = 1; type <= 1200; ++type) push(type, 3);
  std::map<TypeId, int> served;
  for (int i = 0; i < 3; ++i)
    for (const Candidate& job : next().jobs) ++served[job.type_id];
  EXPECT_EQ(served.size(), 1200U) << "three batches of 500";
}

TEST_F(AdmissionTest, BacklogsOfInstantTypesDelayAnotherBacklogByOneBatch) {
  catalog = TypeCatalog({biz_type(1, "noop"), biz_type(2, "noop"), biz_type(3, "noop"), biz_type(9)});
  for (const TypeId type : {1, 2, 3, 9}) queue.push_backlog({{0, type}, kStart});
  for (int round = 0; round < 5; ++round) {
    int batches = 1;
    for (DueBatch batch = next(); batch.is_instant; batch = next()) ++batches, queue.put_back(*batch.backlog);
    EXPECT_LE(batches, 2);
    queue.push_backlog({{static_cast<Shard>(round + 1), 9}, kStart});
  }
}

TEST_F(AdmissionTest, TypesOfOneEndpointShareItsSlotsEqually) {
  const auto gateway = pool_of(240);
  std::vector<BizType> types;
  for (TypeId type = 1; type <= 6; ++type) types.push_back(biz_type(type)), types.back().pool = gateway;
  catalog = TypeCatalog(types);
  push(1, 1000);
  EXPECT_EQ(take_all().at(1), 240U) << "no more than it has, whatever the type could";
  for (TypeId type = 2; type <= 6; ++type) push(type, 1000);
  // An answer takes eight rounds, in each of which an eighth of what runs ends. The first type began evenly.
  constexpr std::size_t kRounds = 8;
  std::deque<std::map<TypeId, std::size_t>> running(kRounds, {{1, 240 / kRounds}});
  for (std::size_t round = 0; round < kRounds; ++round) {
    for (const auto& [type, n] : running.front()) end(type, n);
    running.pop_front();
    running.push_back(take_all());
    std::size_t taken = 0;
    for (const auto& [type, n] : running.back()) taken += n;
    EXPECT_EQ(taken, 240 / kRounds);
  }
  for (TypeId type = 1; type <= 6; ++type) EXPECT_NEAR(static_cast<double>(limiter.running(type)), 40, 8) << type;
}

TEST_F(AdmissionTest, ASoleTypeOfAnEndpointGetsAllItsSlots) {
  BizType one = biz_type(1), other = biz_type(2);
  one.pool = other.pool = pool_of(200);
  catalog = TypeCatalog({one, other});
  push(1, 1000);
  EXPECT_EQ(take_all().at(1), 200U);
}

TEST_F(AdmissionTest, MemoryAndTableShareTheBoundOfOneEndpoint) {
  BizType slow = biz_type(1);
  slow.pool = pool_of(100);
  catalog = TypeCatalog({slow});
  push(1, 50);
  queue.push_backlog({{0, 1}, kStart});
  EXPECT_EQ(take_all().at(1), 100U);
  end(1, 7);
  EXPECT_EQ(take_all().at(1), 7U) << "what has ended hands its slots on";
}

TEST_F(AdmissionTest, ALaneIsClaimedFromTheTableOrFromMemoryAndNeverFromBoth) {
  catalog = TypeCatalog({biz_type(1)});
  queue.push_backlog({{3, 1}, kStart - 1s});
  const Candidate covered{make_job_id(1, 3), 1, kStart}, older{make_job_id(2, 3), 1, kStart - 2s},
      elsewhere{make_job_id(3, 4), 1, kStart};
  queue.push(std::vector{covered, older, elsewhere});
  std::vector<JobId> taken, dropped;
  for (int i = 0; i < 4; ++i) {
    const DueBatch batch = next();
    for (const Candidate& job : batch.jobs) taken.push_back(job.job_id);
    for (const Candidate& job : batch.dropped) dropped.push_back(job.job_id);
  }
  std::ranges::sort(taken);
  EXPECT_EQ(taken, (std::vector{older.job_id, elsewhere.job_id})) << "what the backlog does not cover";
  EXPECT_EQ(dropped, std::vector{covered.job_id});
}

TEST_F(AdmissionTest, ABacklogIsClaimed256RowsOfAShardAtATime) {
  catalog = TypeCatalog({biz_type(1)});
  for (const Shard shard : {Shard{0}, Shard{1}, Shard{2}}) queue.push_backlog({{shard, 1}, kStart});
  for (int i = 0; i < 9; ++i) {
    const DueBatch batch = next();
    ASSERT_TRUE(batch.backlog);
    EXPECT_EQ(batch.backlog->lane.shard, i % 3) << "in turns";
    EXPECT_EQ(batch.limit, 256U);
    queue.put_back(*batch.backlog);
    end(1, 256);
  }
}

TEST_F(AdmissionTest, ABacklogThatIsFoundAgainCoversWhatWasFound) {
  catalog = TypeCatalog({biz_type(1)});
  queue.push_backlog({{3, 1}, kStart});
  const DueBatch first = next();
  ASSERT_TRUE(first.backlog);
  queue.push_backlog({{3, 1}, kStart - 1s});  // while a claimer has the lane
  queue.put_back(*first.backlog);
  EXPECT_EQ(next().backlog->span.from, kStart - 1s);
}

TEST_F(AdmissionTest, ACapacityThatGrowsIsSeenWithoutANewCatalog) {
  BizType type = biz_type(1);
  const auto pool = pool_of(0);
  type.pool = pool;
  catalog = TypeCatalog({type});
  push(1, 10);
  EXPECT_TRUE(next().empty());
  pool->slots = 4;
  EXPECT_EQ(next().jobs.size(), 4U);
}

TEST_F(AdmissionTest, TwoHundredSlowEndpointsLeaveSlotsToAHealthyOne) {
  std::vector<BizType> types{biz_type(1000)};
  for (TypeId type = 1; type <= 200; ++type) {
    types.push_back(biz_type(type));
    types.back().pool = std::make_shared<TestPool>(256, 25.6);
  }
  catalog = TypeCatalog(types);
  for (TypeId type = 1; type <= 200; ++type) push(type, 1000);
  take_all();
  push(1000, 1);
  EXPECT_EQ(next().jobs.size(), 1U);
  EXPECT_LE(queue.size(), 25'000U) << "and a quarter of the memory at most";
  for (TypeId type = 1; type <= 200; ++type) EXPECT_LE(queue.size(type), 125U) << "in equal parts";
}

// The engines of two databases of one node.
TEST_F(AdmissionTest, EnginesOfANodeShareItsConnectionsAndRatesButNoSlots) {
  enum : TypeId { kHook = 1, kPaced, kFree };
  BizType hook = biz_type(kHook), paced = biz_type(kPaced);
  hook.pool = pool_of(100);
  paced.rate_per_s = 20;
  catalog = TypeCatalog({hook, paced, biz_type(kFree)});
  ConcurrencyLimiter other_limiter{4096};
  PollQueue other_polls{10};
  DueQueue other_queue;
  JobAdmission other(other_queue, other_polls, flow, other_limiter, 100'000, 64, 5s);
  const auto take_all_of_other = [&] {
    std::map<TypeId, std::size_t> taken;
    for (;;) {
      const DueBatch batch = other.next_batch(500, {catalog, kStart, now});
      if (batch.empty() && !batch.has_more_to_drop) return taken;
      for (const Candidate& job : batch.jobs) ++taken[job.type_id];
    }
  };
  const auto push_to_both = [&](TypeId type, int n) {
    push(type, n);
    std::vector<Candidate> jobs;
    for (int i = 0; i < n; ++i) jobs.push_back({make_job_id(i + 1, 7), type, kStart});
    other_queue.push(jobs);
  };
  push_to_both(kHook, 150);
  push_to_both(kPaced, 50);
  EXPECT_EQ(take_all(), (std::map<TypeId, std::size_t>{{kHook, 100}}));
  EXPECT_TRUE(take_all_of_other().empty()) << "no connection is free, and no second of the rate has passed";
  end(kHook, 30);
  now += 1s;
  EXPECT_EQ(take_all_of_other(), (std::map<TypeId, std::size_t>{{kHook, 30}, {kPaced, 20}}));
  EXPECT_TRUE(take_all().empty());
  push_to_both(kFree, 5000);
  const std::size_t alone = take_all().at(kFree);
  EXPECT_EQ(limiter.running(), 70 + alone);
  EXPECT_GT(take_all_of_other().at(kFree), alone) << "of its own slots fewer are taken";
}

TEST_F(AdmissionTest, AQuickEndpointKeepsItsJobsInMemory) {
  BizType quick = biz_type(1);
  quick.pool = std::make_shared<TestPool>(512, 10'000);
  catalog = TypeCatalog({quick});
  push(1, 40'000);
  EXPECT_TRUE(next().dropped.empty());
}

TEST_F(AdmissionTest, ReleasedJobsGoBeforeYoungerOnes) {
  catalog = TypeCatalog({biz_type(1)});
  push(1, 5);
  const std::vector<Candidate> back{
      {77, 1, kStart - 2s}, {78, 1, kStart - 1s}, {79, 1, kStart - 1s}, {80, 1, kStart + 1s}};
  queue.push(back);
  const auto jobs = next().jobs;
  ASSERT_GE(jobs.size(), 4U);
  EXPECT_EQ(jobs[0].job_id, 77);
  EXPECT_EQ(jobs[1].job_id, 78);
  EXPECT_EQ(jobs[2].job_id, 79);
  EXPECT_EQ(jobs.back().job_id, 80);
}

}  // namespace
}  // namespace tocsin

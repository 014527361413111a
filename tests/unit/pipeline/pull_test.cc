// Jobs of pull types: claimed for waiting consumers only.
#include <gtest/gtest.h>

#include <set>

#include "pipeline/claimer.h"
#include "unit/pipeline/stage_fixture.h"

namespace tocsin {
namespace {

class Pull : public StageFixture {
 protected:
  void SetUp() override {
    config.capacity = 320;  // eleven due jobs of a pull type may wait for a consumer
    set_types({biz_type(1, "pull"), biz_type(2, "pull"), biz_type(3), biz_type(4, "noop")});
    know_time();
    claimer_.emplace(shared(), store, 42);
  }
  // To the answers of the consumers for whom it claims something.
  MonoTime step() {
    const MonoTime next = claimer_->step(now);
    return next <= now ? claimer_->step(now) : next;
  }
  std::size_t running() { return shared().limiter.running(); }

  void ask(int consumer, TypeId type, std::size_t max, Duration wait = 10s, Duration ttr = 30s) {
    EXPECT_TRUE(shared().polls->add(std::make_shared<const Poll>(
        Poll{type, max, ttr, now, now + wait, [this, consumer] { return gone.contains(consumer); },
             [this, consumer](const std::vector<ClaimedJob>& jobs) {
               for (const ClaimedJob& job : jobs) answers[consumer].push_back(job.job.job_id);
               if (jobs.empty()) empty_answers.insert(consumer);
             }})));
  }
  void win_all_but(const std::set<JobId>& lost, TypeId type = 1) {
    store.on_claim = [this, lost, type](auto jobs, auto ttr, auto&) {
      ttrs.assign(ttr.begin(), ttr.end());
      std::vector<ClaimedJob> out;
      for (const JobId id : jobs) {
        if (!lost.contains(id)) out.push_back(claimed(id, type));
      }
      return out;
    };
  }
  // The types change while the first of two lanes is claimed for a consumer.
  void expect_one_lane_claimed_if_types_become(const std::vector<BizType>& types) {
    for (Shard shard = 0; shard < 2; ++shard) shared().due.push_backlog({{shard, 1}, kStart});
    ask(7, 1, 5);
    store.on_claim_due = [this, types](auto, auto, auto, auto, auto&) {
      set_types(types);
      return std::vector<ClaimedJob>{claimed(1, 1)};
    };
    step();
    EXPECT_EQ(store.calls, 1);
    EXPECT_EQ(answers[7], std::vector<JobId>{1}) << "what was claimed before";
    EXPECT_TRUE(shared().due.has_backlog({1, 1}));
    EXPECT_EQ(running(), 0U);
  }
  // Attempts that go back without having counted.
  std::size_t released() {
    std::size_t n = 0;
    for (const FinishedAttempt& run : shared().outcomes.pop_some(1000)) n += run.is_released;
    return n;
  }

  std::set<int> gone, empty_answers;
  std::map<int, std::vector<JobId>> answers;
  std::vector<Duration> ttrs;

 private:
  std::optional<Claimer> claimer_;
};

TEST_F(Pull, NothingIsClaimedWithoutAPoll) {
  push_due({{1, 1, kStart}, {2, 1, kStart}});
  shared().due.push_backlog({{0, 1}, kStart});
  EXPECT_EQ(step(), kWhenWoken);
  ask(7, 2, 10);
  EXPECT_EQ(step(), kWhenWoken) << "of another type";
  EXPECT_EQ(store.calls, 0);
  EXPECT_EQ(running(), 0U);
  EXPECT_EQ(shared().known.size(), 2U) << "kept for the consumer who comes";
}

TEST_F(Pull, DueJobsGoToTheirConsumersAndTheNodeForgetsThem) {
  push_due({{1, 1, kStart}, {2, 1, kStart}, {3, 1, kStart}});
  ask(7, 1, 2, 10s, 5s);
  ask(8, 1, 2, 10s, 9s);
  win_all_but({});
  EXPECT_EQ(step(), now);
  EXPECT_EQ(ttrs, (std::vector<Duration>{5s, 5s, 9s})) << "each with the lease its consumer asked for";
  EXPECT_EQ(answers, (std::map<int, std::vector<JobId>>{{7, {1, 2}}, {8, {3}}}));
  EXPECT_EQ(running(), 0U);
  EXPECT_EQ(shared().known.size(), 0U);
  EXPECT_EQ(shared().claimed.size(), 0U);
}

TEST_F(Pull, NoMoreIsClaimedThanPollsRequest) {
  push_due({{1, 1, kStart}, {2, 1, kStart}, {3, 1, kStart}});
  ask(7, 1, 2);
  win_all_but({});
  step();
  EXPECT_EQ(answers[7], (std::vector<JobId>{1, 2}));
  EXPECT_EQ(step(), kWhenWoken);
  EXPECT_EQ(shared().due.size(), 1U);
  ask(8, 1, 2);
  step();
  EXPECT_EQ(answers[8], (std::vector<JobId>{3}));
}

TEST_F(Pull, APollWithoutAClaimedJobStaysAtTheHeadOfTheQueue) {
  push_due({{1, 1, kStart}, {2, 1, kStart}});
  ask(7, 1, 1);
  ask(8, 1, 1);
  win_all_but({1});
  step();
  EXPECT_EQ(answers, (std::map<int, std::vector<JobId>>{{8, {2}}}));
  EXPECT_EQ(running(), 0U);
  ask(9, 1, 1);
  push_due({{3, 1, kStart}});
  win_all_but({});
  step();
  EXPECT_EQ(answers[7], (std::vector<JobId>{3}));
  EXPECT_FALSE(answers.contains(9));
}

TEST_F(Pull, JobsClaimedForADisconnectedConsumerAreReleased) {
  push_due({{1, 1, kStart}, {2, 1, kStart}});
  ask(7, 1, 1);
  ask(8, 1, 1);
  store.on_claim = [this](auto jobs, auto, auto&) {
    gone = {7};  // while the claim is on its way
    std::vector<ClaimedJob> out;
    for (const JobId id : jobs) out.push_back(claimed(id, 1));
    return out;
  };
  step();
  EXPECT_EQ(answers, (std::map<int, std::vector<JobId>>{{8, {2}}}));
  EXPECT_EQ(running(), 1U) << "until it is written";
  EXPECT_EQ(released(), 1U);
}

// Else a lease that is shorter than a claim takes would claim and release at full speed.
TEST_F(Pull, APollWhoseLeasesEndDuringTheClaimRestsAndGoesToTheTail) {
  push_due({{1, 1, kStart}});
  ask(7, 1, 1, 60s, /*ttr=*/1ms);
  store.on_claim = [this](auto jobs, auto, auto&) {
    const MonoTime sent = now;
    now += 2ms;
    std::vector<ClaimedJob> out{claimed(jobs[0], 1)};
    out[0].lease_deadline = sent;
    return out;
  };
  step();
  EXPECT_EQ(released(), 1U);
  push_due({{2, 1, kStart}});
  const int calls = store.calls;
  step();
  EXPECT_EQ(store.calls, calls) << "it rests";
  ask(8, 1, 1);
  step();
  EXPECT_EQ(answers[8], (std::vector<JobId>{2})) << "others are served meanwhile";
  push_due({{3, 1, kStart}});
  ask(9, 1, 1);
  now += config.retry_pause;
  shared().polls->expire(now);
  EXPECT_EQ(shared().polls->demand(1), 2U);
  step();
  EXPECT_EQ(answers[9], (std::vector<JobId>{3})) << "it waits at the tail";
  EXPECT_FALSE(answers.contains(7));
}

TEST_F(Pull, JobsClaimedTooLateAreReleasedAndThePollWaits) {
  push_due({{1, 1, kStart}, {2, 1, kStart}});
  ask(7, 1, 1, 10s, /*ttr=*/2s);
  ask(8, 1, 1, 10s, /*ttr=*/60s);
  store.on_claim = [this](auto jobs, auto, auto&) {
    now += 3s;  // so long was the answer on its way
    std::vector<ClaimedJob> out;
    for (const JobId id : jobs) out.push_back(claimed(id, 1));
    return out;
  };
  step();
  EXPECT_EQ(answers, (std::map<int, std::vector<JobId>>{{8, {2}}}));
  EXPECT_EQ(shared().polls->size(), 1U);
  EXPECT_EQ(released(), 1U);
}

TEST_F(Pull, AFailedClaimKeepsItsPollsWaiting) {
  push_due({{1, 1, kStart}});
  ask(7, 1, 5);
  store.on_claim = [](auto, auto, auto&) { return unavailable(); };
  EXPECT_EQ(step(), now + config.retry_pause);
  EXPECT_EQ(running(), 0U);
  EXPECT_EQ(shared().polls->demand(1), 5U);
  EXPECT_TRUE(empty_answers.empty());
}

TEST_F(Pull, AClaimInDoubtDelaysNoPollAndItsJobsAreReleased) {
  push_due({{1, 1, kStart}, {2, 1, kStart}});
  ask(7, 1, 5);
  store.on_claim = [](auto, auto, auto&) { return in_doubt(); };
  step();
  EXPECT_EQ(shared().polls->demand(1), 5U);
  EXPECT_EQ(running(), 2U);
  store.on_claimed_with = [this](auto&, auto) { return std::vector<ClaimedJob>{claimed(2, 1)}; };
  step();
  EXPECT_TRUE(answers.empty());
  EXPECT_EQ(running(), 1U);
  EXPECT_EQ(released(), 1U);
}

TEST_F(Pull, ABacklogClaimServesPollsOfOneLeaseLength) {
  shared().due.push_backlog({{0, 1}, kStart});
  ask(7, 1, 2, 10s, 5s);
  ask(8, 1, 1, 10s, 5s);
  ask(9, 1, 9, 10s, 6s);
  store.on_claim_due = [this](Lane lane, auto, int limit, Duration ttr, auto&) {
    EXPECT_EQ(lane, (Lane{0, 1}));
    EXPECT_EQ(limit, 3);
    EXPECT_EQ(ttr, Duration(5s));
    return std::vector<ClaimedJob>{claimed(1, 1), claimed(2, 1), claimed(3, 1)};
  };
  step();
  EXPECT_EQ(answers, (std::map<int, std::vector<JobId>>{{7, {1, 2}}, {8, {3}}}));
  EXPECT_TRUE(shared().due.has_backlog({0, 1})) << "it may have more";
  store.on_claim_due = [this](auto, auto, int limit, Duration ttr, auto&) {
    EXPECT_EQ(limit, 9);
    EXPECT_EQ(ttr, Duration(6s));
    return std::vector<ClaimedJob>{claimed(4, 1)};
  };
  step();
  EXPECT_EQ(answers[9], (std::vector<JobId>{4}));
  EXPECT_FALSE(shared().due.has_backlog({0, 1}));
  EXPECT_EQ(running(), 0U);
}

TEST_F(Pull, JobsWithoutPollsBeyondTheirShareBecomeBacklog) {
  std::vector<Candidate> jobs;
  for (JobId id = 1; id <= 40; ++id) jobs.push_back({id, 1, kStart});
  push_due(jobs);
  push_due({{1000, 3, kStart}});
  store.on_claim = [this](auto batch, auto, auto&) {
    EXPECT_EQ(batch.size(), 1U);
    return std::vector<ClaimedJob>{claimed(1000, 3)};
  };
  step();
  EXPECT_EQ(shared().claimed.size(), 1U) << "another type is served";
  EXPECT_EQ(shared().due.size(), 11U);
  EXPECT_EQ(shared().known.size(), 11U);
  EXPECT_TRUE(shared().due.has_backlog({12, 1}));
}

TEST_F(Pull, JobsWithoutPollsForALongTimeLeaveMemory) {
  push_due({{1, 1, kStart}});
  step();
  EXPECT_EQ(shared().due.size(), 1U);
  now += 11s;
  step();
  EXPECT_EQ(shared().due.size(), 0U);
  EXPECT_EQ(shared().known.size(), 0U);
  EXPECT_TRUE(shared().due.has_backlog({1, 1})) << "and is found when a consumer asks";
}

TEST_F(Pull, PullTypesAndOthersNeverShareABatch) {
  push_due({{1, 1, kStart}, {2, 3, kStart}, {3, 4, kStart}});
  ask(7, 1, 1);
  int claims = 0, fires = 0;
  store.on_claim = [&](auto jobs, auto, auto&) {
    EXPECT_EQ(jobs.size(), 1U);
    ++claims;
    return std::vector<ClaimedJob>{claimed(jobs[0], jobs[0] == 1 ? 1 : 3)};
  };
  store.on_fire = [&](auto jobs) {
    fires += static_cast<int>(jobs.size());
    return std::vector<Fired>{};
  };
  while (step() <= now) {
  }
  EXPECT_EQ(claims, 2);
  EXPECT_EQ(fires, 1);
  EXPECT_EQ(answers[7], (std::vector<JobId>{1}));
  EXPECT_EQ(shared().claimed.size(), 1U);
}

TEST_F(Pull, APausedTypeIsNotClaimedAndItsConsumersWait) {
  BizType paused = biz_type(1, "pull");
  paused.paused = true;
  set_types({paused});
  push_due({{1, 1, kStart}});
  ask(7, 1, 1);
  EXPECT_EQ(step(), kWhenWoken);
  EXPECT_EQ(store.calls, 0);
  EXPECT_EQ(shared().polls->demand(1), 1U);
}

TEST_F(Pull, ANonBlockingPollGetsDueJobsOrAnEmptyAnswer) {
  push_due({{1, 1, kStart}});
  ask(7, 1, 5, 0s);
  ask(8, 1, 5, 0s);
  win_all_but({});
  while (step() <= now) {
  }
  EXPECT_EQ(answers, (std::map<int, std::vector<JobId>>{{7, {1}}}));
  EXPECT_EQ(empty_answers, std::set<int>{8});
}

TEST_F(Pull, JobsOfManyLanesAnswerOneConsumerTogether) {
  for (Shard shard = 0; shard < 4; ++shard) shared().due.push_backlog({{shard, 1}, kStart});
  ask(7, 1, 5);
  store.on_claim_due = [this](Lane lane, auto, int limit, auto, auto&) {
    std::vector<ClaimedJob> out;
    for (JobId n = 1; n <= std::min(2, limit); ++n) out.push_back(claimed(make_job_id(n, lane.shard), 1));
    return out;
  };
  while (step() <= now && answers.empty()) {
  }
  EXPECT_EQ(answers[7].size(), 5U);
  EXPECT_EQ(store.calls, 3);
  EXPECT_EQ(running(), 0U);
  EXPECT_FALSE(shared().due.has_backlog({0, 1}));
  EXPECT_TRUE(shared().due.has_backlog({2, 1})) << "it may have more";
  EXPECT_TRUE(shared().due.has_backlog({3, 1}));
}

TEST_F(Pull, ClaimedJobsAreDeliveredWhenTheNextLaneFails) {
  for (const Error& error : {unavailable(), in_doubt()}) {
    answers.clear();
    for (Shard shard = 0; shard < 2; ++shard) shared().due.push_backlog({{shard, 1}, kStart});
    ask(7, 1, 5);
    store.on_claim_due = [&, n = 0](auto, auto, auto, auto, auto&) mutable -> Result<std::vector<ClaimedJob>> {
      if (n++ > 0) return error;
      return std::vector<ClaimedJob>{claimed(1, 1), claimed(2, 1)};
    };
    store.on_claimed_with_lane = [](auto&, auto) { return std::vector<ClaimedJob>{}; };
    step();
    EXPECT_TRUE(answers.empty());
    step();
    EXPECT_EQ(answers[7], (std::vector<JobId>{1, 2}));
    EXPECT_EQ(shared().polls->demand(1), 0U);
    if (error.code == ErrorCode::in_doubt) step();
    EXPECT_EQ(running(), 0U);
    shared().due.end_backlog({{0, 1}, kStart});
    shared().due.end_backlog({{1, 1}, kStart});
  }
}

TEST_F(Pull, NoLaneOfABacklogGivesAConsumerJobsThatAreTooLate) {
  BizType type = biz_type(1, "pull");
  type.drop_older_than = 5s;
  set_types({type});
  for (Shard shard = 0; shard < 3; ++shard) shared().due.push_backlog({{shard, 1}, kStart - 1h});
  ask(7, 1, 5);
  std::vector<WallTime> from;
  store.on_claim_due = [&](Lane lane, DueSpan span, auto, auto, auto&) {
    from.push_back(span.from);
    return std::vector<ClaimedJob>{claimed(make_job_id(1, lane.shard), 1)};
  };
  while (answers.empty() && step() <= now) {
  }
  EXPECT_EQ(answers[7].size(), 3U);
  EXPECT_EQ(from, std::vector<WallTime>(3, db_now() - 5s));
}

TEST_F(Pull, ATypeThatWasPausedMeanwhileIsGatheredNoFurther) {
  BizType paused = biz_type(1, "pull");
  paused.paused = true;
  expect_one_lane_claimed_if_types_become({paused});
}

TEST_F(Pull, ATypeThatIsGoneMeanwhileIsGatheredNoFurther) { expect_one_lane_claimed_if_types_become({}); }

class AsyncPull : public Pull {
 protected:
  void SetUp() override {
    config.async_claims = true;
    Pull::SetUp();
  }
};

// After a slow claim the next one waits for the disk.
TEST_F(AsyncPull, AFailedClaimAfterAnotherLaneDoesNotCountAsSlow) {
  for (Shard shard = 0; shard < 2; ++shard) shared().due.push_backlog({{shard, 1}, kStart});
  ask(7, 1, 5);
  store.on_claim_due = [&, n = 0](auto, auto, auto, auto, auto&) mutable -> Result<std::vector<ClaimedJob>> {
    if (n++ == 0) return std::vector<ClaimedJob>{claimed(1, 1)};
    now += config.start_window;
    return unavailable();
  };
  step();
  step();
  ASSERT_EQ(answers[7], (std::vector<JobId>{1}));
  shared().due.end_backlog({{0, 1}, kStart});
  shared().due.end_backlog({{1, 1}, kStart});
  std::optional<bool> waits;
  store.on_claim = [&](auto, auto, const ClaimTicket& ticket) {
    waits = ticket.is_durable;
    return std::vector<ClaimedJob>{claimed(2, 3)};
  };
  push_due({{2, 3, kStart}});
  step();
  EXPECT_EQ(waits, false);
}

TEST_F(Pull, APollWithSomeJobsIsAnsweredAfterAShortTime) {
  for (Shard shard = 0; shard < 20; ++shard) shared().due.push_backlog({{shard, 1}, kStart});
  ask(7, 1, 100);
  store.on_claim_due = [this](Lane lane, auto, auto, auto, auto&) {
    now += 30ms;
    return std::vector<ClaimedJob>{claimed(make_job_id(1, lane.shard), 1)};
  };
  while (answers.empty()) step();
  EXPECT_GE(answers[7].size(), 2U);
  EXPECT_LE(answers[7].size(), 4U);
}

TEST_F(Pull, NoMoreAreLeasedThanMaxRunningUntilSomeAreBack) {
  BizType type = biz_type(1, "pull");
  type.max_running = 2;
  set_types({type});
  push_due({{1, 1, kStart}, {2, 1, kStart}, {3, 1, kStart}});
  ask(7, 1, 3);
  ask(8, 1, 3);
  win_all_but({});
  while (step() <= now) {
  }
  EXPECT_EQ(answers, (std::map<int, std::vector<JobId>>{{7, {1, 2}}}));
  EXPECT_EQ(running(), 0U) << "no memory is held for what is leased";
  EXPECT_EQ(shared().flow->used(1), 2U);
  const Lease lease{1, 10};
  shared().flow->leases().settle({&lease, 1});
  step();
  EXPECT_EQ(answers[8], (std::vector<JobId>{3}));
}

TEST_F(Pull, ARateHoldsForLeases) {
  BizType type = biz_type(1, "pull");
  type.rate_per_s = 2;
  set_types({type});
  std::vector<Candidate> jobs;
  for (JobId id = 1; id <= 10; ++id) jobs.push_back({id, 1, kStart});
  push_due(jobs);
  ask(7, 1, 10);
  win_all_but({});
  step();
  EXPECT_TRUE(answers.empty());
  now += 1s;
  step();
  EXPECT_EQ(answers[7].size(), 2U);
  ask(8, 1, 10);
  step();
  EXPECT_FALSE(answers.contains(8));
}

}  // namespace
}  // namespace tocsin

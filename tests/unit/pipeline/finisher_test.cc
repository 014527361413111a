#include "core/retry_policy.h"
#include "unit/pipeline/finisher_fixture.h"

namespace tocsin {
namespace {

TEST_F(FinisherTest, HasNothingToDoWithoutOutcomes) {
  EXPECT_EQ(step(), kWhenWoken);
  EXPECT_EQ(store.calls, 0);
}

TEST_F(FinisherTest, OnlyCountsOutcomesThatTheHandlerWrote) {
  for (Outcome outcome : {Outcome::done(), Outcome::retry("busy"), Outcome::dead("gone")}) {
    outcome.is_written = true;
    give(claimed(1, 1), outcome);
  }
  step();
  EXPECT_EQ(store.calls, 0);
  EXPECT_EQ(running(), 0U);
  EXPECT_EQ(events[Counter::finished_done], 1);
  EXPECT_EQ(events[Counter::finished_retry], 1);
  EXPECT_EQ(events[Counter::finished_dead], 1);
  EXPECT_EQ(step(), kWhenWoken);
}

TEST_F(FinisherTest, HintsAtRetriesThatAreDueSoonInShardsOfItsOwn) {
  know_time();
  give(claimed(make_job_id(1, 0), 1), Outcome::retry("busy", 300ms));
  give(claimed(make_job_id(2, 0), 1), Outcome::retry("busy", 1h));
  give(claimed(make_job_id(3, 9), 1), Outcome::retry("busy", 300ms));
  now += 40ms;
  EXPECT_EQ(step(), now) << "once written, their time is known";
  now += 2ms;
  step();
  const auto hints = shared().candidates.pop_some(10);
  ASSERT_EQ(hints.size(), 1U);
  EXPECT_EQ(hints[0].job_id, make_job_id(1, 0));
  EXPECT_GE(hints[0].fire_at, db_now() + 300ms);
  EXPECT_LE(hints[0].fire_at, db_now() + 310ms);
  EXPECT_EQ(step(), kWhenWoken);
}

// A node that ends releases what it has claimed when its shards are another's already, who may have read the lane.
TEST_F(FinisherTest, HintsRetriesToTheOwnerOfTheirShard) {
  know_time();
  shared().membership.begin_drain();
  give(claimed(make_job_id(1, 9), 1), Outcome::done(), true);
  give(claimed(make_job_id(2, 9), 1), Outcome::retry("busy", 300ms));
  give(claimed(make_job_id(3, 9), 1), Outcome::retry("busy", 1h));
  give(claimed(make_job_id(4, 9), 1), Outcome::done());
  step();
  now += 2ms;
  step();
  ASSERT_EQ(told.size(), 2U);
  EXPECT_EQ(told[0].job_id, make_job_id(1, 9));
  EXPECT_LE(told[0].fire_at, db_now() + 1ms);
  EXPECT_EQ(told[1].job_id, make_job_id(2, 9));
  EXPECT_GE(told[1].fire_at, db_now() + 300ms);
  EXPECT_EQ(shared().candidates.size(), 0U);
}

TEST_F(FinisherTest, WritesEveryKindOfOutcomeUnderItsToken) {
  give(claimed(1, 1), Outcome::done());
  give(claimed(2, 1), Outcome::retry("busy", 3s));
  give(claimed(3, 1), Outcome::dead("gone"));
  give(claimed(4, 1), Outcome::done(), true);
  step();
  ASSERT_EQ(sent.size(), 4U);
  EXPECT_EQ(sent[0].kind, FinishRequest::Kind::done);
  EXPECT_EQ(sent[0].token, 10);
  EXPECT_EQ(sent[1].kind, FinishRequest::Kind::retry);
  EXPECT_EQ(sent[1].delay, 3s);
  EXPECT_EQ(sent[1].message, "busy");
  EXPECT_EQ(sent[2].kind, FinishRequest::Kind::dead);
  EXPECT_EQ(sent[2].message, "gone");
  EXPECT_EQ(sent[3].kind, FinishRequest::Kind::release_claim);
  EXPECT_EQ(events[Counter::finished_done], 1);
  EXPECT_EQ(events[Counter::finished_retry], 1);
  EXPECT_EQ(events[Counter::finished_dead], 1);
  EXPECT_EQ(events[Counter::released], 1);
  EXPECT_EQ(running(), 0U);
}

TEST_F(FinisherTest, ReportsLatenessOfFirstStartsOnly) {
  give(claimed(1, 1, 1), Outcome::done());
  give(claimed(2, 1, 2), Outcome::done());
  give(claimed(3, 1, 1), Outcome::done(), true);
  give(claimed(4, 1, 1), Outcome::not_started(0s));
  give(claimed(5, 1, 1), Outcome::handed_over());
  step();
  EXPECT_EQ(events.lateness(), (std::vector<Duration>{7ms, 7ms})) << "of 1 and 5: the others never started";
}

TEST_F(FinisherTest, ReleasedJobsTakeNoRateToken) {
  BizType paced = biz_type(1);
  paced.rate_per_s = 2;
  set_types({paced});
  const auto left = [&] { return shared().flow->take(paced, 10, Pace::fresh, now).n; };
  static_cast<void>(left());
  now += 1s;
  ASSERT_EQ(left(), 2U);
  ASSERT_EQ(shared().limiter.acquire(1, 2), 2U);
  for (const bool is_released : {true, false})
    ASSERT_TRUE(
        shared().outcomes.try_push({std::make_shared<const ClaimedJob>(claimed(1, 1)), Outcome::done(), is_released}));
  step();
  EXPECT_EQ(left(), 1U);
}

// Its slot in the start pool goes back when the attempt ends, or together with the permit.
TEST_F(FinisherTest, AWrittenOutcomeReturnsItsPermitAndItsSlot) {
  BizType limited = biz_type(1);
  limited.max_running = 2;
  limited.pool = pool_of(2);
  set_types({limited});
  for (const bool is_slot_free : {false, true}) {
    ASSERT_EQ(shared().flow->take(limited, 5, Pace::fresh, now).n, 2U) << is_slot_free;
    ASSERT_EQ(shared().limiter.acquire(1, 2), 2U);
    for (JobId id = 1; id <= 2; ++id) {
      if (is_slot_free) shared().flow->return_slot(1);
      auto job = std::make_shared<const ClaimedJob>(claimed(id, 1));
      ASSERT_TRUE(shared().outcomes.try_push({job, Outcome::done(), false, now, is_slot_free}));
    }
    store.on_finish = [](auto) { return unavailable(); };
    step();
    EXPECT_EQ(shared().flow->used(1), 2U) << "the outcome is not written";
    reply_with(FinishReply::applied);
    step();
    EXPECT_EQ(shared().flow->used(1), 0U) << is_slot_free;
    EXPECT_EQ(shared().flow->in_pool(*limited.pool), 0U) << is_slot_free;
    EXPECT_EQ(running(), 0U);
  }
}

TEST_F(FinisherTest, AReceiversRetryAfterIsALowerBoundOfTheBackoff) {
  give(claimed(1, 1, 4), Outcome::retry_no_sooner("busy", 1s));
  give(claimed(2, 1, 4), Outcome::retry_no_sooner("busy", 20s));
  give(claimed(3, 1, 4), Outcome::retry_no_sooner("busy", {}));
  step();
  ASSERT_EQ(sent.size(), 3U);
  EXPECT_EQ(sent[0].delay, 8s);
  EXPECT_EQ(sent[1].delay, 20s);
  EXPECT_EQ(sent[2].delay, 8s);
}

TEST_F(FinisherTest, WritesNothingForHandedOverJobs) {
  give(claimed(1, 1), Outcome::handed_over());
  EXPECT_EQ(step(), now) << "there may be more";
  EXPECT_EQ(store.calls, 0) << "the claim goes on as the lease";
  EXPECT_EQ(running(), 0U);
  EXPECT_EQ(shared().flow->used(1), 0U) << "its receiver minds how much it takes";
  EXPECT_EQ(step(), kWhenWoken);
}

TEST_F(FinisherTest, ReleasesJobsBeyondTheHandlersCapacity) {
  give(claimed(1, 1, 16), Outcome::not_started(2s));
  step();
  ASSERT_EQ(sent.at(0).kind, FinishRequest::Kind::release_claim);
  EXPECT_EQ(sent.at(0).delay, 2s);
}

TEST_F(FinisherTest, KeepsRetryDelaysWithinStorableTimes) {
  give(claimed(1, 1), Outcome::retry("never", Duration::max()));
  give(claimed(2, 1), Outcome::retry("yesterday", -5s));
  step();
  EXPECT_EQ(sent.at(0).delay, kLongestBackoff);
  EXPECT_EQ(sent.at(1).delay, 0s);
}

TEST_F(FinisherTest, RetriesByTheBackoffOfTheTypeUntilTheAttemptsAreSpent) {
  for (const int attempt : {1, 2, 3, 15}) {
    ClaimedJob job = claimed(1, 1, attempt);
    job.job.max_attempts = 16;
    give(job, Outcome::retry("no"));
    step();
    ASSERT_EQ(sent.at(0).kind, FinishRequest::Kind::retry) << attempt;
    EXPECT_EQ(sent.at(0).delay, std::min<Duration>(1s * (1 << (attempt - 1)), 1h));
  }
  ClaimedJob last = claimed(1, 1, 16);
  last.job.max_attempts = 16;
  give(last, Outcome::retry("no", 1s));
  step();
  EXPECT_EQ(sent.at(0).kind, FinishRequest::Kind::dead);
  EXPECT_EQ(sent.at(0).message, "no");
}

TEST_F(FinisherTest, WritesOnlyTextThatAnyStoreTakes) {
  using namespace std::string_literals;
  give(claimed(1, 1), Outcome::retry("a\0b\xff 订单"s));
  give(claimed(2, 1), Outcome::dead(std::string(999, 'x') + "订单"));
  step();
  EXPECT_EQ(sent.at(0).message, "a?b? 订单");
  EXPECT_EQ(sent.at(1).message, std::string(999, 'x'));
}

TEST_F(FinisherTest, AnAttemptThatNeverStartedCannotKill) {
  ClaimedJob last = claimed(1, 1, 16);
  last.job.max_attempts = 16;
  give(last, Outcome::done(), true);
  step();
  EXPECT_EQ(sent.at(0).kind, FinishRequest::Kind::release_claim);
}

TEST_F(FinisherTest, CountsResultsOfLostClaimsAsNothingElse) {
  reply_with(FinishReply::stale);
  give(claimed(1, 1), Outcome::done());
  step();
  EXPECT_EQ(events[Counter::stale_finishes], 1);
  EXPECT_EQ(events[Counter::finished_done], 0);
  EXPECT_EQ(running(), 0U);
}

TEST_F(FinisherTest, RetriesLockedRows) {
  store.on_finish = [this](std::span<const FinishRequest> requests) {
    sent.assign(requests.begin(), requests.end());
    std::vector<FinishReply> replies;
    for (const FinishRequest& request : requests) {
      replies.push_back(request.job_id == 2 ? FinishReply::busy : FinishReply::applied);
    }
    return replies;
  };
  for (JobId id = 1; id <= 3; ++id) give(claimed(id, id == 2 ? 7 : 1), Outcome::done());
  step();
  EXPECT_EQ(shared().limiter.running(1), 0U);
  EXPECT_EQ(shared().limiter.running(7), 1U);
  EXPECT_EQ(step(), now + config.retry_pause);
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].job_id, 2);
  EXPECT_EQ(sent[0].token, 20);
  reply_with(FinishReply::applied);
  step();
  EXPECT_EQ(running(), 0U);
  EXPECT_EQ(events[Counter::finished_done], 3);
  EXPECT_EQ(step(), kWhenWoken);
}

TEST_F(FinisherTest, LockedRowsDelayNoOtherOutcome) {
  const auto batch = static_cast<JobId>(config.finish_batch);
  store.on_finish = [&](std::span<const FinishRequest> requests) {
    std::vector<FinishReply> replies;
    for (const FinishRequest& request : requests) {
      replies.push_back(request.job_id <= batch ? FinishReply::busy : FinishReply::applied);
    }
    return replies;
  };
  for (JobId id = 1; id <= batch + 10; ++id) give(claimed(id, 1), Outcome::done());
  for (int i = 0; i < 5; ++i) step();
  EXPECT_EQ(events[Counter::finished_done], 10);
  EXPECT_EQ(running(), config.finish_batch);
}

TEST_F(FinisherTest, KeepsOutcomesWhileTheStoreIsUnavailable) {
  for (const Error& error : {unavailable(), in_doubt()}) {
    store.on_finish = [&](auto) { return error; };
    for (JobId id = 1; id <= 5; ++id) give(claimed(id, 1), Outcome::done());
    EXPECT_EQ(step(), now + config.retry_pause);
    EXPECT_EQ(step(), now + config.retry_pause);
    EXPECT_EQ(running(), 5U);
    reply_with(FinishReply::applied);
    step();
    EXPECT_EQ(sent.size(), 5U);
    EXPECT_EQ(running(), 0U);
    EXPECT_EQ(step(), kWhenWoken);
  }
}

// A dead session whose peer is silent must not take a lease along.
TEST_F(FinisherTest, WaitsForAnAnswerNoLongerThanAPartOfTheShortestLease) {
  BizType brief = biz_type(1), brisk = biz_type(2), pulled = biz_type(3, "pull"), function = biz_type(4, "sql");
  brief.ttr = 6s;
  pulled.ttr = function.ttr = 100ms;
  const auto first_wait = [&](std::vector<BizType> types) {
    set_types(std::move(types));
    give(claimed(1, 1), Outcome::done());
    step();
    return store.time_limit;
  };
  EXPECT_EQ(first_wait({biz_type(1), biz_type(2)}), 10s);
  EXPECT_EQ(first_wait({brief, biz_type(2)}), 2s);
  EXPECT_EQ(first_wait({brief, pulled, function}), 2s) << "others write their outcomes";
  brisk.ttr = 100ms;
  EXPECT_EQ(first_wait({brief, brisk}), 1s);
}

TEST_F(FinisherTest, GivesASlowDatabaseTwiceTheTimeWithEachTry) {
  give(claimed(1, 1), Outcome::done());
  store.on_finish = [&](auto) { return in_doubt(); };
  for (const Duration wait : {10s, 20s, 40s}) {
    step();
    EXPECT_EQ(store.time_limit, wait);
  }
  reply_with(FinishReply::applied);
  step();
  give(claimed(2, 1), Outcome::done());
  step();
  EXPECT_EQ(store.time_limit, 10s);
}

TEST_F(FinisherTest, ReportsWhenOutcomesAreStuck) {
  give(claimed(1, 1), Outcome::done());
  store.on_finish = [&](auto) -> Result<std::vector<FinishReply>> {
    EXPECT_FALSE(shared().has_stuck_outcomes(now + 10s));
    EXPECT_TRUE(shared().has_stuck_outcomes(now + 11s)) << "while it is waited for";
    return in_doubt();
  };
  step();
  store.on_finish = [&](auto) { return unavailable(); };
  now += 11s;
  step();
  EXPECT_TRUE(shared().has_stuck_outcomes(now)) << "since the first try";
  reply_with(FinishReply::busy);
  step();
  EXPECT_FALSE(shared().has_stuck_outcomes(now)) << "a locked row is an answer, too";
}

// Somebody may hold the lock of today's history table for longer than a lease, and each call ends after lock_timeout.
TEST_F(FinisherTest, OutcomesAreStuckWhileATableIsLocked) {
  give(claimed(1, 1), Outcome::done());
  store.on_finish = [](auto) -> Result<std::vector<FinishReply>> {
    return Error{ErrorCode::conflict, "canceling statement due to lock timeout", kLocked};
  };
  step();
  EXPECT_FALSE(shared().has_stuck_outcomes(now + 10s));
  now += 11s;
  step();
  EXPECT_TRUE(shared().has_stuck_outcomes(now)) << "since the first try";
  EXPECT_EQ(store.time_limit, 10s) << "the server is not slow: the call has no longer limit";
  store.on_finish = [](auto) -> Result<std::vector<FinishReply>> { return Error{ErrorCode::invalid, "not this", ""}; };
  step();
  EXPECT_FALSE(shared().has_stuck_outcomes(now)) << "a refused row is an answer, too";
}

// What two jobs of a batch cannot both have, the store refuses for the whole batch.
TEST_F(FinisherTest, SplitsARefusedBatchUntilTheRowIsAlone) {
  for (JobId id = 1; id <= 20; ++id) give(claimed(id, 1), Outcome::done());
  constexpr JobId kCulprit = 13;
  std::vector<JobId> written;
  bool is_cured = false;
  store.on_finish = [&](std::span<const FinishRequest> requests) -> Result<std::vector<FinishReply>> {
    for (const FinishRequest& request : requests)
      if (request.job_id == kCulprit && !is_cured) return Error{ErrorCode::invalid, "not this one", ""};
    for (const FinishRequest& request : requests) written.push_back(request.job_id);
    return std::vector<FinishReply>(requests.size(), FinishReply::applied);
  };
  MonoTime next = now;
  for (int steps = 0; next <= now && steps < 100; ++steps) next = step();
  ASSERT_EQ(written.size(), 19U) << "without any time passing";
  EXPECT_EQ(running(), 1U);
  EXPECT_EQ(events[Counter::set_aside], 1);
  EXPECT_GT(events.failures(), 0);
  // Others pass it by.
  give(claimed(30, 1), Outcome::done());
  step();
  EXPECT_EQ(written.back(), 30);
  is_cured = true;
  now = next;
  step();
  EXPECT_EQ(written.back(), kCulprit) << "nothing is lost";
  EXPECT_EQ(running(), 0U);
  EXPECT_EQ(step(), kWhenWoken);
}

// A trigger that fails on one history table refuses every job that ends there.
TEST_F(FinisherTest, ManyRefusedOutcomesHoldUpNoOthers) {
  constexpr JobId kCulprits = 600;  // at a millisecond per call, one of them is always due for its next try
  bool is_slow = false;
  std::vector<JobId> written;
  store.on_finish = [&](std::span<const FinishRequest> requests) -> Result<std::vector<FinishReply>> {
    now += is_slow ? 1ms : 0ms;
    if (std::ranges::any_of(requests, [](const auto& request) { return request.job_id <= kCulprits; }))
      return Error{ErrorCode::unavailable, "the trigger fails", kRefused};
    for (const FinishRequest& request : requests) written.push_back(request.job_id);
    return std::vector<FinishReply>(requests.size(), FinishReply::applied);
  };
  for (JobId id = 1; id <= kCulprits; ++id) give(claimed(id, 1), Outcome::done());
  for (MonoTime next = now; next <= now;) next = step();
  ASSERT_EQ(events[Counter::set_aside], kCulprits);
  is_slow = true;
  now += 1s;
  for (JobId id = kCulprits + 1; id <= kCulprits + 100; ++id) {
    give(claimed(id, 1), Outcome::done());
    for (int steps = 0; steps < 3; ++steps) step();
  }
  EXPECT_EQ(written.size(), 100U);
  EXPECT_EQ(running(), static_cast<std::size_t>(kCulprits));
}

TEST_F(FinisherTest, GivesUpARefusedOutcomeWhenItsLeaseIsOver) {
  ClaimedJob job = claimed(1, 1);
  job.lease_deadline = now + 2s;
  give(job, Outcome::done());
  store.on_finish = [](auto) -> Result<std::vector<FinishReply>> { return Error{ErrorCode::invalid, "never", ""}; };
  int steps = 0;
  for (MonoTime next = step(); next != kWhenWoken && steps < 100; next = step(), ++steps) now = std::max(now, next);
  EXPECT_EQ(running(), 0U) << "the row is due again by itself";
  EXPECT_GE(now.time_since_epoch(), 2s);
  EXPECT_LT(steps, 20) << "not in a hurry";
}

TEST_F(FinisherTest, KeepsOutcomesInConflictEvenAfterTheirLease) {
  ClaimedJob job = claimed(1, 1);
  job.lease_deadline = now + 1s;
  give(job, Outcome::done());
  store.on_finish = [](auto) -> Result<std::vector<FinishReply>> { return Error{ErrorCode::conflict, "later", ""}; };
  for (int steps = 0; steps < 20; ++steps) now = std::max(now, step());
  EXPECT_GT(now.time_since_epoch(), 3s);
  EXPECT_EQ(running(), 1U);
  reply_with(FinishReply::applied);
  now += 1s;
  step();
  EXPECT_EQ(running(), 0U);
}

TEST_F(FinisherTest, RetriesTheWholeBatchWhileATableIsLocked) {
  for (JobId id = 1; id <= 8; ++id) give(claimed(id, 1), Outcome::done());
  store.on_finish = [](auto requests) -> Result<std::vector<FinishReply>> {
    EXPECT_EQ(requests.size(), 8U);
    return Error{ErrorCode::conflict, "canceling statement due to lock timeout", kLocked};
  };
  for (int steps = 0; steps < 10; ++steps) {
    const MonoTime next = step();
    EXPECT_EQ(next, now + config.retry_pause);
    now = next;
  }
  EXPECT_EQ(events[Counter::set_aside], 0);
}

TEST_F(FinisherTest, TheWaitIsOverWhenAllThatWasKeptIsSent) {
  for (JobId id = 1; id <= 3; ++id) give(claimed(id, 1), Outcome::done());
  store.on_finish = [](auto) { return unavailable(); };
  step();
  now += 1s;
  store.on_finish = [](std::span<const FinishRequest> requests) -> Result<std::vector<FinishReply>> {
    if (requests.size() > 2) return Error{ErrorCode::invalid, "not this one", ""};
    return std::vector<FinishReply>(requests.size(), FinishReply::busy);
  };
  step();
  EXPECT_TRUE(shared().has_late_outcomes(now)) << "refused as a batch: all wait";
  step();
  EXPECT_TRUE(shared().has_late_outcomes(now)) << "two of them wait";
  step();
  EXPECT_FALSE(shared().has_late_outcomes(now)) << "that their rows are locked is an answer";
}

// Each of its parts may take long, too, and the leases of the jobs behind it may end meanwhile.
TEST_F(FinisherTest, ARefusedBatchIsNoAnswerToTheOutcomesInIt) {
  for (JobId id = 1; id <= 4; ++id) give(claimed(id, 1), Outcome::done());
  store.on_finish = [&](std::span<const FinishRequest> requests) -> Result<std::vector<FinishReply>> {
    now += 1s;
    if (requests.size() > 2) give(claimed(5, 1), Outcome::done());
    return Error{ErrorCode::invalid, "not this one", ""};
  };
  for (int calls = 0; events[Counter::set_aside] < 5; ++calls) {
    ASSERT_LT(calls, 20);
    step();
    EXPECT_EQ(shared().has_late_outcomes(now), events[Counter::set_aside] < 5) << events[Counter::set_aside];
  }
}

TEST_F(FinisherTest, OutcomesThatEndDuringAFailedCallAreSentWithTheKept) {
  give(claimed(1, 1), Outcome::done());
  store.on_finish = [this](auto) {
    for (JobId id = 2; id <= static_cast<JobId>(2 * config.finish_batch); ++id) give(claimed(id, 1), Outcome::done());
    return in_doubt();
  };
  step();
  reply_with(FinishReply::applied);
  step();
  EXPECT_EQ(sent.size(), 2 * config.finish_batch) << "their leases may have ended, too";
}

TEST_F(FinisherTest, HandedOverJobsKeepThePermitOfALimitedType) {
  BizType type = biz_type(1);
  type.max_running = 5;
  set_types({type});
  give(claimed(1, 1), Outcome::handed_over());
  step();
  EXPECT_EQ(running(), 0U);
  EXPECT_EQ(shared().flow->used(1), 1U);
  const Lease lease{1, 10};
  shared().flow->leases().settle({&lease, 1});
  EXPECT_EQ(shared().flow->used(1), 0U);
}

}  // namespace
}  // namespace tocsin

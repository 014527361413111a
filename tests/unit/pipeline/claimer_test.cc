#include "pipeline/finisher.h"
#include "unit/pipeline/claimer_fixture.h"

namespace tocsin {
namespace {

class AsyncClaimerTest : public ClaimerTest {
 protected:
  AsyncClaimerTest() { config.async_claims = true; }
};

TEST_F(ClaimerTest, HasNothingToDoWhenNothingIsDue) {
  EXPECT_EQ(step(), kWhenWoken);
  EXPECT_EQ(store.calls, 0);
}

TEST_F(ClaimerTest, ClaimsNothingWhileOutcomesAreStuck) {
  push_due({{1, 1, kStart}});
  win_all_but({});
  shared().answers.note_request(now);
  now += shared().outcome_patience() + 1ms;
  EXPECT_EQ(step(), now + config.retry_pause);
  EXPECT_EQ(store.calls, 0);
  shared().answers.note_answer();
  step();
  EXPECT_EQ(won().size(), 1U);
}

// A dead session whose peer is silent must not hold the lanes and jobs of a batch for long.
TEST_F(ClaimerTest, WaitsForAnAnswerNoLongerThanAPartOfTheShortestLease) {
  store.on_claim = [](auto, auto, auto&) { return std::vector<ClaimedJob>{}; };
  store.on_claim_due = [](auto, auto, auto, auto, auto&) { return std::vector<ClaimedJob>{}; };
  store.on_fire = [](auto) { return std::vector<Fired>{}; };
  store.on_fire_due = [](auto, auto, auto) { return std::vector<Fired>{}; };
  const auto limits = [&] {
    std::vector<Duration> found;
    push_due({{1, 1, kStart - 1s}, {2, 3, kStart - 1s}});
    shared().due.push_backlog({{4, 1}, kStart});
    shared().due.push_backlog({{4, 3}, kStart});
    for (int calls = store.calls; calls < 100; calls = store.calls) {
      step();
      if (store.calls == calls) break;
      found.push_back(std::exchange(store.time_limit, Duration(0)));
    }
    return found;
  };
  EXPECT_EQ(limits(), std::vector<Duration>(4, 4s)) << "longer than a claim may wait for the lock of a table";
  BizType brief = biz_type(1), briefer = biz_type(1);
  brief.ttr = 6s;
  briefer.ttr = 100ms;
  set_types({brief, biz_type(3, "noop")});
  EXPECT_EQ(limits(), std::vector<Duration>(4, 2s));
  set_types({briefer, biz_type(3, "noop")});
  EXPECT_EQ(limits(), std::vector<Duration>(4, 1s));
}

TEST_F(ClaimerTest, GivesASlowDatabaseTwiceTheTimeWithEachTry) {
  push_due({{1, 1, kStart}});
  store.on_claim = [](auto, auto, auto&) { return in_doubt(); };
  store.on_claimed_with = [](auto&, auto) { return unavailable(); };
  for (const Duration limit : {4s, 8s, 16s}) {
    step();
    EXPECT_EQ(store.time_limit, limit);
  }
  store.on_claimed_with = [](auto&, auto) { return std::vector<ClaimedJob>{}; };
  step();
  push_due({{2, 1, kStart}});
  step();
  EXPECT_EQ(store.time_limit, 4s);
}

TEST_F(ClaimerTest, AClaimIsInDoubtUntilItsJobsAreKnown) {
  push_due({{1, 1, kStart}});
  store.on_claim = [](auto, auto, auto&) { return in_doubt(); };
  store.on_claimed_with = [](auto&, auto) { return unavailable(); };
  step();
  step();
  EXPECT_TRUE(shared().claims_in_doubt.may_hold_jobs(now));
  store.on_claimed_with = [](auto&, auto) { return std::vector<ClaimedJob>{}; };
  step();
  EXPECT_TRUE(shared().claims_in_doubt.may_hold_jobs(now)) << "they are being released";
  EXPECT_FALSE(shared().claims_in_doubt.may_hold_jobs(now + 5s));
}

TEST_F(ClaimerTest, ContinuesAtOnceWhileThereIsMoreToForget) {
  std::vector<Candidate> jobs;
  for (JobId id = 1; id <= 5'000; ++id) jobs.push_back({id, 1, kStart});
  push_due(jobs);
  BizType paused = biz_type(1);
  paused.paused = true;
  set_types({paused});
  while (step() <= now) {
  }
  EXPECT_EQ(shared().known.size(), 0U);
  EXPECT_EQ(store.calls, 0);
}

TEST_F(ClaimerTest, PassesOnClaimedJobsAndCountsLostOnes) {
  push_due({{1, 1, kStart}, {2, 1, kStart - 1s}, {3, 1, kStart}});
  win_all_but({2});
  EXPECT_LE(step(), now);
  const auto jobs = won();
  ASSERT_EQ(jobs.size(), 2U);
  EXPECT_EQ(jobs[0].job.biz_type, "type.1");
  EXPECT_EQ(events[Counter::claims_won], 2);
  EXPECT_EQ(events[Counter::claims_lost], 1);
  EXPECT_EQ(shared().known.size(), 0U);
  EXPECT_EQ(running(), 2U) << "the slot of the lost one is free again";
}

// The database's clock runs slower than the estimate, or was set back by some milliseconds.
TEST_F(ClaimerTest, AClaimThatMayBeTooEarlyReturnsToTheWheel) {
  push_due({{1, 1, kStart}, {2, 3, kStart}});
  store.on_claim = [](auto, auto, auto&) { return std::vector<ClaimedJob>{}; };
  store.on_fire = [](auto) { return std::vector<Fired>{}; };
  step();
  step();
  auto again = shared().candidates.pop_some(10);
  ASSERT_EQ(again.size(), 2U);
  for (const Candidate& job : again) EXPECT_EQ(job.fire_at, db_now() + 2ms);
  EXPECT_EQ(shared().known.size(), 2U) << "no scan takes it in meanwhile";
  EXPECT_EQ(running(), 0U);
  EXPECT_EQ(events[Counter::claims_lost], 0);
}

TEST_F(ClaimerTest, JobsLostRepeatedlyAreLeftToTheScan) {
  Candidate job{1, 1, kStart};
  store.on_claim = [](auto, auto, auto&) { return std::vector<ClaimedJob>{}; };
  int claims = 0;
  shared().known.add(1, 1);
  for (; claims < 10; ++claims) {
    now += std::max(Duration(0), job.fire_at - db_now());
    shared().due.push(std::vector{job});
    step();
    const auto again = shared().candidates.pop_some(10);
    if (again.empty()) break;
    job = again.front();
  }
  EXPECT_EQ(claims, 4);
  EXPECT_EQ(now - MonoTime{}, 30ms);
  EXPECT_EQ(shared().known.size(), 0U);
  EXPECT_EQ(events[Counter::claims_lost], 1);
}

// The pauses between its claims add up to 2, 6, 14 and 30 ms.
TEST_F(ClaimerTest, AClockSetBackDelaysAJobByAsMuchAgainAndTwoMilliseconds) {
  JobId id = 0;
  for (const Duration back : {1000us, 2100us, 5000us, 6100us, 14'100us, 29'000us}) {
    const WallTime due = db_now();
    step_database_clock(-back);
    Candidate job{++id, 1, due};
    std::optional<WallTime> started;
    store.on_claim = [&](auto, auto, auto&) {
      std::vector<ClaimedJob> won;
      if (db_now() < due) return won;
      started = db_now();
      won.push_back(claimed(id, 1));
      return won;
    };
    shared().known.add(id, 1);
    for (int i = 0; i < 5 && !started; ++i) {
      now = std::max(now, shared().db_clock.when(job.fire_at));
      shared().due.push(std::vector{job});
      step();
      if (const auto again = shared().candidates.pop_some(1); !again.empty()) job = again.front();
    }
    ASSERT_TRUE(started) << back.count();
    EXPECT_LT(*started - due, back + 2ms) << back.count();
    know_time();  // the next scan
  }
}

TEST_F(ClaimerTest, TheFirstClaimDetectsAClockSetForward) {
  win_all_but({});
  store.on_fire = [this](auto jobs) { return std::vector<Fired>{{jobs[0], 3, kStart, db_now()}}; };
  for (const TypeId type : {1, 3}) {
    step_database_clock(5ms);
    push_due({{type, type, kStart}});
    step();
    EXPECT_LE(*shared().db_clock.at_least(now), db_now() - 4ms);
    now += 300us;  // the answer's way back
    step();
    EXPECT_GE(*shared().db_clock.at_least(now), db_now() - 300us);
    EXPECT_LE(*shared().db_clock.at_least(now), db_now());
  }
}

TEST_F(ClaimerTest, ReportsNoLatenessBeforeTheStart) {
  push_due({{1, 1, kStart}});
  win_all_but({});
  step();
  EXPECT_TRUE(events.lateness().empty());
}

TEST_F(ClaimerTest, SendsTheTimeToRunOfEachTypeAndTrustsItFromBeforeTheRequest) {
  BizType quick = biz_type(1), slow = biz_type(2);
  quick.ttr = 5s;
  slow.ttr = 60s;
  set_types({quick, slow});
  push_due({{1, 1, kStart}, {2, 2, kStart}});
  const MonoTime sent = now;
  std::map<JobId, Duration> asked;
  store.on_claim = [&](auto jobs, auto ttr, auto&) {
    for (std::size_t i = 0; i < jobs.size(); ++i) asked[jobs[i]] = ttr[i];
    now += 3s;  // a slow answer
    return std::vector<ClaimedJob>{claimed(1, 1), claimed(2, 2)};
  };
  step();
  EXPECT_EQ(asked, (std::map<JobId, Duration>{{1, 5s}, {2, 60s}}));
  const auto jobs = won();
  ASSERT_EQ(jobs.size(), 2U);
  EXPECT_EQ(jobs[0].lease_deadline, sent + 5s - config.lease_margin);
  EXPECT_EQ(jobs[0].start_by, sent + config.start_window);
  EXPECT_EQ(jobs[1].lease_deadline, sent + 60s - config.lease_margin);
}

TEST_F(ClaimerTest, TrustsTheRequestedLeaseAfterAChangeOfTheType) {
  BizType before = biz_type(1), after = biz_type(1);
  before.ttr = 5s;
  after.ttr = 1h;
  set_types({before});
  push_due({{1, 1, kStart}});
  const MonoTime sent = now;
  store.on_claim = [&](auto, auto, auto&) {
    set_types({after});
    return std::vector<ClaimedJob>{claimed(1, 1)};
  };
  step();
  EXPECT_EQ(won().at(0).lease_deadline, sent + 5s - config.lease_margin);
}

TEST_F(ClaimerTest, WaitsForTheDiskUnlessTheHandlerChecksTheClaim) {
  set_types({biz_type(1), biz_type(2, "sql")});
  std::vector<bool> waits;
  store.on_claim = [&](auto jobs, auto, const ClaimTicket& ticket) {
    waits.push_back(ticket.is_durable);
    return std::vector<ClaimedJob>{claimed(jobs[0], jobs[0] == 1 ? 1 : 2)};
  };
  store.on_claim_due = [&](Lane, DueSpan, int, Duration, const ClaimTicket& ticket) {
    waits.push_back(ticket.is_durable);
    return std::vector<ClaimedJob>{};
  };
  push_due({{1, 1, kStart}});
  step();
  push_due({{2, 2, kStart}});
  step();
  push_due({{3, 2, kStart}, {4, 1, kStart}});
  step();
  shared().due.push_backlog({{0, 1}, {}, Pace::fresh});
  step();
  shared().due.push_backlog({{0, 2}, {}, Pace::fresh});
  step();
  EXPECT_EQ(waits, (std::vector<bool>{true, false, true, true, false}));
}

TEST_F(AsyncClaimerTest, WaitsForTheDiskOnlyAfterASlowClaim) {
  std::vector<bool> waits;
  store.on_claim = [&](auto, auto, const ClaimTicket& ticket) {
    waits.push_back(ticket.is_durable);
    now += 400ms;
    return std::vector<ClaimedJob>{claimed(1, 1)};
  };
  const MonoTime sent = now;
  push_due({{1, 1, kStart}});
  step();
  EXPECT_EQ(won().at(0).start_by, sent + config.start_window);
  push_due({{1, 1, kStart}});
  step();
  EXPECT_EQ(won().at(0).start_by, MonoTime::max()) << "or nothing would ever start";
  EXPECT_EQ(waits, (std::vector<bool>{false, true}));
}

TEST_F(ClaimerTest, AfterASlowClaimLateJobsStillDoNotStart) {
  BizType type = biz_type(1);
  type.drop_older_than = 5s;
  set_types({type});
  store.on_claim = [&](auto, auto, auto&) {
    now += 400ms;
    ClaimedJob job = claimed(1, 1);
    job.fire_at_before = kStart;
    return std::vector<ClaimedJob>{job};
  };
  push_due({{1, 1, kStart}});
  step();
  push_due({{1, 1, kStart}});
  step();
  EXPECT_EQ(won().at(1).start_by, shared().db_clock.when(kStart + 6s));
}

TEST_F(ClaimerTest, DrawsAFreshSeedForEveryClaim) {
  std::set<std::int64_t> seeds;
  store.on_claim = [&](auto, auto, const ClaimTicket& ticket) {
    seeds.insert(ticket.seed);
    return std::vector<ClaimedJob>{};
  };
  for (JobId id = 1; id <= 20; ++id) {
    push_due({{id, 1, kStart}});
    step();
  }
  EXPECT_EQ(seeds.size(), 20U);
}

TEST_F(ClaimerTest, ForgetsItsCandidatesWhenTheStoreIsUnavailable) {
  push_due({{1, 1, kStart}, {2, 2, kStart}});
  store.on_claim = [](auto, auto, auto&) { return unavailable(); };
  EXPECT_EQ(step(), now + config.retry_pause);
  EXPECT_EQ(running(), 0U);
  EXPECT_EQ(shared().known.size(), 0U) << "their rows are pending: the next scan finds them";
  EXPECT_TRUE(won().empty());
  EXPECT_EQ(events.failures(), 1);
}

TEST_F(ClaimerTest, ReadsItsClaimsAfterALostReply) {
  push_due({{1, 1, kStart}, {2, 1, kStart}});
  std::int64_t seed = 0;
  store.on_claim = [&](auto, auto, const ClaimTicket& ticket) {
    seed = ticket.seed;
    return in_doubt();
  };
  EXPECT_EQ(step(), now + config.retry_pause);
  EXPECT_EQ(running(), 2U);
  EXPECT_EQ(shared().known.size(), 2U);

  const MonoTime sent = now;
  now += 1s;
  store.on_claimed_with = [](auto&, auto) { return unavailable(); };
  EXPECT_EQ(step(), now + config.retry_pause) << "asks until it knows";

  store.on_claimed_with = [&](const ClaimTicket& ticket, auto jobs) {
    EXPECT_EQ(ticket.seed, seed);
    EXPECT_EQ(jobs.size(), 2U);
    return std::vector<ClaimedJob>{claimed(2, 1)};
  };
  EXPECT_LE(step(), now);
  const auto jobs = won();
  ASSERT_EQ(jobs.size(), 1U);
  EXPECT_EQ(jobs[0].lease_deadline, sent + 30s - config.lease_margin)
      << "counted from the claim, not from the question";
  EXPECT_EQ(jobs[0].start_by, sent + config.start_window)
      << "too late: it is given back and claimed with a whole lease";
  EXPECT_EQ(running(), 1U);
  EXPECT_EQ(shared().known.size(), 1U) << "the one that was lost right at its time is tried once more";
  EXPECT_EQ(events[Counter::claims_in_doubt], 1);

  push_due({{3, 1, kStart}});
  store.on_claim = [&](auto, auto, auto&) { return std::vector<ClaimedJob>{claimed(3, 1)}; };
  step();
  EXPECT_EQ(won().at(0).start_by, MonoTime::max()) << "the claim before was slow; or nothing would ever start";
}

TEST_F(ClaimerTest, ResolvesItsDoubtAlsoWhileTheNodeDrains) {
  push_due({{1, 1, kStart}});
  store.on_claim = [](auto, auto, auto&) { return in_doubt(); };
  step();
  shared().membership.begin_drain();
  store.on_claimed_with = [this](auto&, auto) { return std::vector<ClaimedJob>{claimed(1, 1)}; };
  step();
  EXPECT_EQ(won().size(), 1U) << "the runner gives it back";
  EXPECT_EQ(step(), kWhenWoken);
}

TEST_F(ClaimerTest, ClaimsABacklogUntilItIsEmpty) {
  shared().due.push_backlog({{4, 1}, kStart - 1h});
  JobId id = 0;
  int left = 300;
  store.on_claim_due = [&](Lane lane, DueSpan span, int limit, Duration, auto&) {
    EXPECT_EQ(lane, (Lane{4, 1}));
    EXPECT_EQ(span.from, kStart - 1h);
    std::vector<ClaimedJob> out;
    for (; left > 0 && std::ssize(out) < limit; --left) out.push_back(claimed(++id, 1));
    return out;
  };
  step();
  EXPECT_TRUE(shared().due.has_backlog({4, 1}));
  EXPECT_EQ(running(), 256U);
  step();
  EXPECT_FALSE(shared().due.has_backlog({4, 1})) << "fewer than asked: nothing else is due";
  EXPECT_EQ(won().size(), 300U);
  EXPECT_EQ(running(), 300U);
  EXPECT_EQ(events[Counter::backlog_claims], 300);
  EXPECT_EQ(shared().ended_backlogs.pop_some(10), (std::vector<Lane>{{4, 1}})) << "the scanner reads it at once";
}

TEST_F(ClaimerTest, LeavesTheBacklogToTheScannerWhenItsClaimFails) {
  shared().due.push_backlog({{4, 1}, kStart});
  shared().due.push_backlog({{4, 3}, kStart});
  store.on_claim_due = [](auto, auto, auto, auto, auto&) { return unavailable(); };
  store.on_fire_due = [](auto, auto, auto) { return in_doubt(); };
  step();
  step();
  EXPECT_EQ(shared().due.backlog_lanes(), 0U);
  EXPECT_EQ(running(), 0U);
  auto ended = shared().ended_backlogs.pop_some(10);
  std::ranges::sort(ended);
  EXPECT_EQ(ended, (std::vector<Lane>{{4, 1}, {4, 3}})) << "it reads them at once";
}

TEST_F(ClaimerTest, ReadsItsBacklogClaimsByLane) {
  shared().due.push_backlog({{4, 1}, kStart});
  store.on_claim_due = [](auto, auto, auto, auto, auto&) { return in_doubt(); };
  step();
  EXPECT_TRUE(shared().due.has_backlog({4, 1}));
  store.on_claimed_with_lane = [this](auto&, Lane lane) {
    EXPECT_EQ(lane, (Lane{4, 1}));
    return std::vector<ClaimedJob>{claimed(1, 1), claimed(2, 1)};
  };
  step();
  EXPECT_EQ(won().size(), 2U);
  EXPECT_EQ(running(), 2U);
  EXPECT_FALSE(shared().due.has_backlog({4, 1}));
  EXPECT_EQ(shared().ended_backlogs.size(), 1U) << "the scanner reads what else is due";
}

TEST_F(ClaimerTest, AReleasedCatchUpAttemptGivesItsTokenBack) {
  BizType type = biz_type(1);
  type.catch_up_rate_per_s = 2;
  set_types({type});
  static_cast<void>(shared().flow->take(type, 1, Pace::catch_up, now));  // the bucket begins to fill
  now += 1s;
  shared().due.push_backlog({{4, 1}, DueSpan{kStart - 1h, kStart - 1min}, Pace::catch_up});
  store.on_claim_due = [this](auto, auto, int limit, auto, auto&) {
    EXPECT_EQ(limit, 2);
    return std::vector<ClaimedJob>{claimed(1, 1), claimed(2, 1)};
  };
  step();
  for (ClaimedJob& job : won())
    ASSERT_TRUE(shared().outcomes.try_push({std::make_shared<const ClaimedJob>(job), Outcome::not_started(0s), true}));
  store.on_finish = [](auto requests) { return std::vector<FinishReply>(requests.size(), FinishReply::applied); };
  EXPECT_EQ(shared().flow->take(type, 2, Pace::catch_up, now).n, 0U);
  Finisher finisher(shared(), store, 42);
  finisher.step(now);
  EXPECT_EQ(events[Counter::released], 2);
  EXPECT_EQ(shared().flow->take(type, 2, Pace::catch_up, now).n, 2U);
}

TEST_F(ClaimerTest, ForgetsJobsOfTypesThatWerePausedMeanwhile) {
  push_due({{1, 1, kStart}});
  BizType paused = biz_type(1);
  paused.paused = true;
  set_types({paused});
  EXPECT_EQ(step(), kWhenWoken);
  EXPECT_EQ(store.calls, 0);
  EXPECT_EQ(shared().known.size(), 0U);
}

TEST_F(ClaimerTest, ClaimsNothingNewWhileTheNodeDrains) {
  push_due({{1, 1, kStart}});
  shared().membership.begin_drain();
  EXPECT_EQ(step(), kWhenWoken);
  EXPECT_EQ(store.calls, 0);
}

TEST_F(ClaimerTest, NeverHoldsMoreThanTheNodeMayRun) {
  int most = 0;
  store.on_claim = [&](auto jobs, auto, auto&) {
    std::vector<ClaimedJob> out;
    for (const JobId id : jobs) out.push_back(claimed(id, id % 2 == 0 ? 1 : 2));
    most += static_cast<int>(jobs.size());
    return out;
  };
  std::vector<Candidate> jobs;
  for (JobId id = 1; id <= 10'000; ++id) jobs.push_back({id, id % 2 == 0 ? 1 : 2, kStart});
  push_due(jobs);
  while (step() <= now) {
  }
  const auto held = won().size();
  EXPECT_EQ(most, static_cast<int>(held));
  EXPECT_GT(held, config.max_running / 2);
  EXPECT_LT(held, config.max_running) << "some slots stay free for types that come later";
  EXPECT_EQ(shared().due.size(), 10'000 - held);
}

}  // namespace
}  // namespace tocsin

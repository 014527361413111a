// JobStore: claim, claim_due, claimed_with, fire, fire_due.
#include <algorithm>
#include <numeric>
#include <set>

#include "support/contract/store_fixture.h"

namespace tocsin {
namespace {

std::vector<JobId> ids_of(const auto& items) {
  std::vector<JobId> ids;
  for (const auto& item : items)
    if constexpr (requires { item.job.job_id; })
      ids.push_back(item.job.job_id);
    else
      ids.push_back(item.job_id);
  std::ranges::sort(ids);
  return ids;
}

using Ids = std::vector<JobId>;

TEST_P(StoreContract, ClaimTakesADueJobAndReturnsEveryField) {
  NewJob job = due("order-1");
  job.attribute_json = R"({"amount": 12.5})";
  job.max_attempts = 7;
  job.traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  job.idempotency_key = "once";
  const JobId id = create(job);
  const WallTime before = db->now();
  const ClaimedJob claimed = claim_one(id, kLong);
  const WallTime after = db->now();
  EXPECT_EQ(claimed.job.job_id, id);
  EXPECT_EQ(claimed.job.biz_id, "order-1");
  EXPECT_EQ(claimed.job.type_id, type_id);
  EXPECT_EQ(claimed.job.status, JobStatus::running);
  EXPECT_EQ(claimed.job.attempts, 1);
  EXPECT_EQ(claimed.job.max_attempts, 7);
  EXPECT_EQ(claimed.job.node, "node-a");
  EXPECT_EQ(claimed.job.traceparent, job.traceparent);
  EXPECT_EQ(claimed.job.idempotency_key, "once");
  EXPECT_NE(claimed.job.attribute_json.find("12.5"), std::string::npos);
  EXPECT_GE(claimed.job.fire_at, before + kLong);
  EXPECT_LE(claimed.job.fire_at, after + kLong);
  ASSERT_TRUE(claimed.job.started_at);
  EXPECT_GE(*claimed.job.started_at, before);
  EXPECT_LE(*claimed.job.started_at, after);
  const Job stored = find(id);
  EXPECT_EQ(stored.status, JobStatus::running);
  EXPECT_EQ(stored.attempts, 1);
  EXPECT_EQ(stored.fire_at, claimed.job.fire_at);
  EXPECT_EQ(stored.action_time, claimed.job.action_time);
}

TEST_P(StoreContract, AClaimReturnsTheDueTime) {
  const JobId id = create(due("one")), other = create(due("two"));
  const WallTime time = find(id).fire_at, others_time = find(other).fire_at;
  EXPECT_EQ(claim_one(id).fire_at_before, time);
  const auto won = must(db->store().claim_due(lane_of(other), {}, 10, kLong, ticket())).won;
  ASSERT_EQ(won.size(), 1U);
  EXPECT_EQ(won[0].fire_at_before, others_time);
}

TEST_P(StoreContract, ClaimLeavesAJobAloneUntilTheDatabaseClockReachesItsTime) {
  NewJob job = due();
  job.when = {db->now() + std::chrono::milliseconds(100), {}};
  const JobId id = create(job);
  EXPECT_TRUE(claim({id}).empty());
  db->wait_until(*job.when.at);
  EXPECT_EQ(claim({id}).size(), 1u);
}

TEST_P(StoreContract, ClaimIsWonOnce) {
  const JobId id = create(due());
  const std::vector<Duration> ttr{kLong};
  const auto first = must(db->store().claim(seen(Ids{id}), ttr, ticket("node-a"))).won;
  const auto second = must(db->other_store().claim(seen(Ids{id}), ttr, ticket("node-b"))).won;
  EXPECT_EQ(first.size(), 1u);
  EXPECT_TRUE(second.empty());
  EXPECT_EQ(find(id).node, "node-a");
}

TEST_P(StoreContract, ClaimOfAnIdGivenTwiceIsWonOnce) {
  const JobId id = create(due());
  EXPECT_EQ(claim({id, id, id}).size(), 1u);
  EXPECT_EQ(find(id).attempts, 1);
}

TEST_P(StoreContract, ClaimTakesWhatIsDueAndSkipsTheRest) {
  const Ids jobs = create({due("a"), later("b"), due("c"), due("d"), due("e")});
  cancel(jobs[2]);
  claim_one(jobs[3]);
  const auto won =
      claim({jobs[0], jobs[1], jobs[2], jobs[3], jobs[4], make_job_id(1'000'000, 0), make_job_id(5, 1023)});
  EXPECT_EQ(ids_of(won), (Ids{std::min(jobs[0], jobs[4]), std::max(jobs[0], jobs[4])}));
}

TEST_P(StoreContract, ClaimGivesEachJobItsOwnTimeToRun) {
  const Ids jobs = create({due("a"), due("b")});
  const std::vector<Duration> ttr{std::chrono::minutes(1), std::chrono::hours(2)};
  const WallTime before = db->now();
  for (const ClaimedJob& claimed : must(db->store().claim(seen(jobs), ttr, ticket())).won) {
    const Duration asked = claimed.job.job_id == jobs[0] ? ttr[0] : ttr[1];
    EXPECT_GE(claimed.job.fire_at, before + asked);
    EXPECT_LE(claimed.job.fire_at, db->now() + asked);
  }
}

// After a failover that lost more than a sequence writes ahead, an id may be another job's.
TEST_P(StoreContract, ClaimAndFireSkipJobsWhoseTypeHasChanged) {
  const auto jobs = create({due("a"), due("b")});
  auto candidates = seen(jobs);
  candidates[0].type_id = other_type_id;
  EXPECT_TRUE(must(db->store().fire({&candidates[0], 1}, "node-a")).empty());
  const std::vector<Duration> ttr(2, kLong);
  EXPECT_EQ(ids_of(must(db->store().claim(candidates, ttr, ticket())).won), Ids{jobs[1]});
  EXPECT_EQ(find(jobs[0]).status, JobStatus::pending);
  EXPECT_EQ(find(jobs[0]).attempts, 0);
  EXPECT_EQ(must(db->store().fire(seen({jobs[0]}), "node-a")).size(), 1U);
}

TEST_P(StoreContract, ClaimOfNothingIsNothing) { EXPECT_TRUE(claim({}).empty()); }

TEST_P(StoreContract, ClaimSkipsLockedRowsWithoutWaiting) {
  const Ids jobs = create({due("a"), due("b")});
  db->lock(jobs[0]);
  EXPECT_EQ(ids_of(claim(jobs)), Ids{jobs[1]});
  db->unlock();
  EXPECT_EQ(ids_of(claim(jobs)), Ids{jobs[0]});
}

TEST_P(StoreContract, TokensDifferBetweenJobsAndBetweenClaimSeeds) {
  std::vector<NewJob> wanted;
  for (int i = 0; i < 100; ++i) wanted.push_back(due("order-" + std::to_string(i)));
  const Ids jobs = create(wanted);
  std::set<ClaimToken> tokens;
  for (int round = 0; round < 2; ++round) {
    for (const ClaimedJob& claimed : claim(jobs, kShort)) tokens.insert(claimed.token);
    let_pass(kShort * 2);
  }
  EXPECT_EQ(tokens.size(), 200u);
}

TEST_P(StoreContract, ClaimTakesOverAnExpiredLeaseAndNotesIt) {
  const JobId id = create(due());
  const ClaimedJob first = claim_and_expire(id);
  const std::vector<Duration> ttr{kLong};
  const auto won = must(db->other_store().claim(seen(Ids{id}), ttr, ticket("node-b"))).won;
  ASSERT_EQ(won.size(), 1u);
  EXPECT_EQ(won[0].job.attempts, 2);
  EXPECT_NE(won[0].token, first.token);
  EXPECT_EQ(won[0].job.started_at, first.job.started_at) << "the start of the first attempt stays";
  for (const Job& job : {won[0].job, find(id)}) {
    ASSERT_EQ(job.errors.size(), 1u);
    EXPECT_EQ(job.errors[0].node, "node-a");
    EXPECT_EQ(job.errors[0].attempt, 1);
    EXPECT_FALSE(job.errors[0].message.empty());
    EXPECT_EQ(job.node, "node-b");
  }
}

TEST_P(StoreContract, ClaimDoesNotTakeALeaseThatHolds) {
  const JobId id = create(due());
  claim_one(id, kLong);
  EXPECT_TRUE(claim({id}).empty());
  EXPECT_EQ(find(id).attempts, 1);
}

TEST_P(StoreContract, ClaimNeverExceedsTheAttempts) {
  NewJob job = due();
  job.max_attempts = 2;
  const JobId id = create(job);
  claim_and_expire(id);
  claim_and_expire(id);
  EXPECT_TRUE(claim({id}).empty());
  EXPECT_TRUE(must(db->store().claim_due(lane_of(id), WallTime{}, 10, kLong, ticket())).won.empty());
  EXPECT_TRUE(must(db->store().fire(seen(Ids{id}), "node-a")).empty());
  EXPECT_TRUE(must(db->store().fire_due(lane_of(id), WallTime{}, 10, "node-a")).empty());
  EXPECT_EQ(find(id).attempts, 2);
}

TEST_P(StoreContract, ClaimTakesTenThousandJobsAtOnce) {
  std::vector<NewJob> wanted;
  for (int i = 0; i < 10'000; ++i) wanted.push_back(due("order-" + std::to_string(i)));
  const Ids jobs = create(wanted);
  EXPECT_EQ(claim(jobs).size(), 10'000u);
  EXPECT_EQ(counts_of(type_id), (std::map<JobStatus, std::int64_t>{{JobStatus::running, 10'000}}));
}

// claim_due ----------------------------------------------------------------------------------------------------------

TEST_P(StoreContract, ClaimDueTakesTheOldestFirstAndExactlyTheLimit) {
  Ids jobs;
  const WallTime start = db->now() - std::chrono::minutes(10);
  for (int i = 0; i < 30; ++i) {
    const JobId id = create(due("same"));  // fire_at rises with every create
    jobs.push_back(id);
  }
  Ids seen;
  for (const std::size_t expected : {7u, 7u, 7u, 7u, 2u, 0u}) {
    const auto won = must(db->store().claim_due(lane_of(jobs[0]), start, 7, kLong, ticket())).won;
    ASSERT_EQ(won.size(), expected);
    for (const JobId id : ids_of(won)) seen.push_back(id);
  }
  EXPECT_EQ(seen, jobs);
}

TEST_P(StoreContract, ClaimDueBeginsAtFromAndStaysInItsLane) {
  const JobId old = create(due("same"));
  let_pass(kShort);
  const WallTime from = db->now();
  const JobId young = create(due("same"));
  const JobId future = create(later("same"));
  NewJob foreign = due("same");
  foreign.type_id = other_type_id;
  const JobId other = create(foreign);
  const auto won = must(db->store().claim_due(lane_of(old), from, 100, kLong, ticket())).won;
  EXPECT_EQ(ids_of(won), Ids{young});
  EXPECT_EQ(find(old).status, JobStatus::pending);
  EXPECT_EQ(find(future).status, JobStatus::pending);
  EXPECT_EQ(find(other).status, JobStatus::pending);
}

TEST_P(StoreContract, ClaimsOfABacklogMayBeginAmongRowsOfEqualTime) {
  const WallTime at = db->now() + 100 * kShort;
  std::vector<NewJob> wanted(5, due("same"));
  for (NewJob& job : wanted) job.when = {at, {}};
  Ids jobs = create(wanted);
  std::ranges::sort(jobs);
  db->wait_until(at);
  DueSpan span;  // were the creation slow, each would be due at an instant of its own
  span.begin_after({find(jobs[1]).fire_at, jobs[1]});
  EXPECT_EQ(ids_of(must(db->store().claim_due(lane_of(jobs[0]), span, 1, kLong, ticket())).won), Ids{jobs[2]});
  EXPECT_EQ(ids_of(must(db->store().fire_due(lane_of(jobs[0]), span, 10, "node-a"))), (Ids{jobs[3], jobs[4]}));
  EXPECT_EQ(must(db->store().fire_due(lane_of(jobs[0]), {}, 10, "node-a")).size(), 2U) << "with those before it";
}

TEST_P(StoreContract, ClaimDueReadsFromTheBeginningOfTime) {
  const JobId id = create(due());
  EXPECT_EQ(must(db->store().claim_due(lane_of(id), WallTime::min(), 10, kLong, ticket())).won.size(), 1u);
}

TEST_P(StoreContract, ClaimDueSkipsLockedAndExhaustedRowsAndStillFillsItsLimit) {
  NewJob last_try = due("same");
  last_try.max_attempts = 1;
  const JobId exhausted = create(last_try);
  claim_and_expire(exhausted);
  const JobId locked = create(due("same"));
  const JobId first = create(due("same"));
  const JobId second = create(due("same"));
  db->lock(locked);
  const auto won = must(db->store().claim_due(lane_of(first), WallTime{}, 2, kLong, ticket())).won;
  db->unlock();
  EXPECT_EQ(ids_of(won), (Ids{first, second}));
}

TEST_P(StoreContract, ClaimDueTakesOverExpiredLeasesAndNotesThem) {
  const JobId id = create(due());
  const ClaimedJob first = claim_and_expire(id);
  const auto won = must(db->other_store().claim_due(lane_of(id), WallTime{}, 10, kLong, ticket("node-b"))).won;
  ASSERT_EQ(won.size(), 1u);
  EXPECT_EQ(won[0].job.attempts, 2);
  EXPECT_EQ(won[0].job.errors.size(), 1u);
  EXPECT_NE(won[0].token, first.token);
}

TEST_P(StoreContract, ClaimDueSetsTheSameAsClaim) {
  const JobId id = create(due());
  const WallTime before = db->now();
  const auto won = must(db->store().claim_due(lane_of(id), WallTime{}, 1, kLong, ticket("node-c"))).won;
  ASSERT_EQ(won.size(), 1u);
  const Job& job = won[0].job;
  EXPECT_EQ(job.status, JobStatus::running);
  EXPECT_EQ(job.attempts, 1);
  EXPECT_EQ(job.node, "node-c");
  EXPECT_GE(job.fire_at, before + kLong);
  EXPECT_LE(job.fire_at, db->now() + kLong);
  EXPECT_EQ(finish({id, won[0].token, FinishRequest::Kind::done, {}, ""}), FinishReply::applied);
}

// claimed_with -------------------------------------------------------------------------------------------------------

TEST_P(StoreContract, AJobNamedTwiceIsClaimedAndReturnedOnce) {
  const JobId job = create(due());
  const Ids twice = {job, job};
  const ClaimTicket mine = ticket();
  const auto won = must(db->store().claim(seen(twice), std::vector<Duration>(2, kLong), mine)).won;
  ASSERT_EQ(ids_of(won), Ids{job});
  EXPECT_EQ(won[0].job.attempts, 1);
  EXPECT_EQ(ids_of(must(db->store().claimed_with(mine, twice))), Ids{job});
  const JobId instant = create(due());
  EXPECT_EQ(must(db->store().fire(seen(Ids{instant, instant}), "n")).size(), 1U);
}

TEST_P(StoreContract, ClaimedWithReturnsTheJobsOfAClaim) {
  const Ids jobs = create({due("a"), due("b"), later("c")});
  const ClaimTicket mine = ticket();
  const std::vector<Duration> ttr(3, kLong);
  const auto won = must(db->store().claim(seen(jobs), ttr, mine)).won;
  const auto told = must(db->store().claimed_with(mine, jobs));
  ASSERT_EQ(ids_of(told), ids_of(won));
  for (const ClaimedJob& job : told) {
    const auto same = std::ranges::find(won, job.job.job_id, [](const ClaimedJob& c) { return c.job.job_id; });
    EXPECT_EQ(job.token, same->token);
    EXPECT_EQ(job.job.attempts, 1);
    EXPECT_EQ(job.job.fire_at, same->job.fire_at);
    EXPECT_EQ(job.job.biz_id, same->job.biz_id);
  }
}

TEST_P(StoreContract, ClaimedWithReturnsNoJobsOfOtherClaims) {
  const Ids jobs = create({due("a"), due("b"), due("c")});
  const std::vector<Duration> ttr(1, kShort);
  const ClaimTicket mine = ticket();
  must(db->store().claim(seen(Ids{jobs[0]}), ttr, mine));
  must(db->store().claim(seen(Ids{jobs[1]}), ttr, ticket()));
  EXPECT_EQ(ids_of(must(db->store().claimed_with(mine, jobs))), Ids{jobs[0]});
  EXPECT_TRUE(must(db->store().claimed_with(mine, Ids{jobs[1]})).empty());
  EXPECT_TRUE(must(db->store().claimed_with(ticket(), jobs)).empty());
  let_pass(kShort * 2);
  claim({jobs[0]});  // another claim has it now
  EXPECT_TRUE(must(db->store().claimed_with(mine, jobs)).empty());
}

TEST_P(StoreContract, ClaimedWithOfALaneReturnsTheJobsOfClaimDue) {
  std::vector<NewJob> wanted(5, due("same"));
  const Ids jobs = create(wanted);
  const Lane lane = lane_of(jobs[0]);
  const ClaimTicket mine = ticket();
  const auto won = must(db->store().claim_due(lane, WallTime{}, 3, kLong, mine)).won;
  must(db->store().claim_due(lane, WallTime{}, 1, kLong, ticket()));
  const auto told = must(db->store().claimed_with(mine, lane));
  EXPECT_EQ(ids_of(told), ids_of(won));
  EXPECT_EQ(told.size(), 3u);
  EXPECT_TRUE(must(db->store().claimed_with(mine, Lane{lane.shard, other_type_id})).empty());
}

// As after a database that was away for longer than the lease.
TEST_P(StoreContract, ClaimedWithReturnsJobsWhoseLeaseHasEnded) {
  const JobId first = create(due("same")), second = create(due("same"));
  const std::vector<Duration> brief{std::chrono::milliseconds(1)};
  ClaimTicket by_id = ticket(), of_lane = ticket();
  by_id.sent_after = of_lane.sent_after = db->now();
  must(db->store().claim(seen(Ids{first}), brief, by_id));
  must(db->store().claim_due(lane_of(second), WallTime{}, 1, brief[0], of_lane));
  db->wait_until(db->now() + std::chrono::milliseconds(2));
  EXPECT_EQ(ids_of(must(db->store().claimed_with(by_id, Ids{first}))), Ids{first});
  EXPECT_EQ(ids_of(must(db->store().claimed_with(of_lane, lane_of(second)))), Ids{second});
}

TEST_P(StoreContract, ClaimedWithReturnsNoFinishedJobs) {
  const JobId id = create(due());
  const ClaimTicket mine = ticket();
  const std::vector<Duration> ttr{kLong};
  const auto won = must(db->store().claim(seen(Ids{id}), ttr, mine)).won;
  finish({id, won[0].token, FinishRequest::Kind::retry, kLong, "no"});
  EXPECT_TRUE(must(db->store().claimed_with(mine, Ids{id})).empty());
  EXPECT_TRUE(must(db->store().claimed_with(mine, lane_of(id))).empty());
}

// fire ---------------------------------------------------------------------------------------------------------------

TEST_P(StoreContract, FireClaimsRunsAndFinishesInOneStep) {
  NewJob wanted = due();
  wanted.attribute_json = R"({"keep":"me"})";
  const JobId id = create(wanted);
  const WallTime before = db->now();
  const auto fired = must(db->store().fire(seen(Ids{id}), "node-a"));
  ASSERT_EQ(fired.size(), 1u);
  EXPECT_EQ(fired[0].job_id, id);
  EXPECT_EQ(fired[0].type_id, type_id);
  EXPECT_GE(fired[0].started_at, before);
  const Job job = find(id);
  EXPECT_EQ(job.status, JobStatus::done);
  EXPECT_EQ(job.attempts, 1);
  EXPECT_EQ(job.node, "node-a");
  EXPECT_EQ(std::max(job.action_time, job.gmt_create), fired[0].due_at);
  EXPECT_EQ(job.started_at, fired[0].started_at);
  ASSERT_TRUE(job.finished_at);
  EXPECT_GE(*job.finished_at, *job.started_at);
  EXPECT_NE(job.attribute_json.find("me"), std::string::npos);
  EXPECT_TRUE(must(db->store().fire(seen(Ids{id}), "node-a")).empty());
}

TEST_P(StoreContract, FireHasTheConditionsOfClaim) {
  const Ids jobs = create({due("a"), later("b"), due("c"), due("d"), due("e")});
  cancel(jobs[2]);
  claim_one(jobs[3]);
  db->lock(jobs[4]);
  const auto fired = must(db->store().fire(seen(jobs), "node-a"));
  db->unlock();
  EXPECT_EQ(ids_of(fired), Ids{jobs[0]});
  EXPECT_EQ(find(jobs[1]).status, JobStatus::pending);
  EXPECT_EQ(find(jobs[2]).status, JobStatus::cancelled);
  EXPECT_EQ(find(jobs[3]).status, JobStatus::running);
  EXPECT_EQ(find(jobs[4]).status, JobStatus::pending);
  EXPECT_EQ(ids_of(must(db->store().fire(seen(jobs), "node-a"))), Ids{jobs[4]}) << "free now";
}

TEST_P(StoreContract, FireOfAnIdGivenTwiceHappensOnce) {
  const JobId id = create(due());
  EXPECT_EQ(must(db->store().fire(seen(Ids{id, id}), "node-a")).size(), 1u);
}

TEST_P(StoreContract, FireTakesOverAnExpiredLeaseAndNotesIt) {
  const JobId id = create(due());
  const ClaimedJob first = claim_and_expire(id);
  EXPECT_EQ(must(db->store().fire(seen(Ids{id}), "node-b")).size(), 1u);
  const Job job = find(id);
  EXPECT_EQ(job.status, JobStatus::done);
  EXPECT_EQ(job.attempts, 2);
  EXPECT_EQ(job.errors.size(), 1u);
  EXPECT_EQ(finish({id, first.token, FinishRequest::Kind::done, {}, ""}), FinishReply::stale);
}

TEST_P(StoreContract, FireDueTakesTheOldestFirstAndExactlyTheLimit) {
  Ids jobs;
  for (int i = 0; i < 10; ++i) jobs.push_back(create(due("same")));
  const JobId future = create(later("same"));
  const Lane lane = lane_of(jobs[0]);
  const auto first = must(db->store().fire_due(lane, WallTime::min(), 4, "node-a"));
  EXPECT_EQ(ids_of(first), Ids(jobs.begin(), jobs.begin() + 4));
  const auto rest = must(db->store().fire_due(lane, WallTime::min(), 100, "node-a"));
  EXPECT_EQ(ids_of(rest), Ids(jobs.begin() + 4, jobs.end()));
  EXPECT_TRUE(must(db->store().fire_due(lane, WallTime::min(), 100, "node-a")).empty());
  EXPECT_EQ(find(future).status, JobStatus::pending);
  EXPECT_EQ(find(jobs[9]).status, JobStatus::done);
}

TEST_P(StoreContract, FireDueBeginsAtFromAndStaysInItsLane) {
  const JobId old = create(due("same"));
  let_pass(kShort);
  const WallTime from = db->now();
  const JobId young = create(due("same"));
  NewJob foreign = due("same");
  foreign.type_id = other_type_id;
  const JobId other = create(foreign);
  EXPECT_EQ(ids_of(must(db->store().fire_due(lane_of(old), from, 10, "node-a"))), Ids{young});
  EXPECT_EQ(find(old).status, JobStatus::pending);
  EXPECT_EQ(find(other).status, JobStatus::pending);
}

TEST_P(StoreContract, FireTakesTenThousandJobsAtOnce) {
  std::vector<NewJob> wanted;
  for (int i = 0; i < 10'000; ++i) wanted.push_back(due("order-" + std::to_string(i)));
  const Ids jobs = create(wanted);
  EXPECT_EQ(must(db->store().fire(seen(jobs), "node-a")).size(), 10'000u);
  EXPECT_EQ(counts_of(type_id), (std::map<JobStatus, std::int64_t>{{JobStatus::done, 10'000}}));
}

// Races --------------------------------------------------------------------------------------------------------------

TEST_P(StoreContract, ACancelledJobIsNeverClaimed) {
  const JobId id = create(due());
  EXPECT_EQ(cancel(id).kind, CancelReply::Kind::cancelled);
  EXPECT_TRUE(claim({id}).empty());
  EXPECT_TRUE(must(db->store().claim_due(lane_of(id), WallTime{}, 10, kLong, ticket())).won.empty());
  EXPECT_TRUE(must(db->store().fire(seen(Ids{id}), "node-a")).empty());
  EXPECT_TRUE(must(db->store().fire_due(lane_of(id), WallTime{}, 10, "node-a")).empty());
}

TEST_P(StoreContract, AClaimedJobCannotBeCancelledAndAFiredOneIsFinished) {
  const Ids jobs = create({due("a"), due("b")});
  claim_one(jobs[0]);
  must(db->store().fire(seen(Ids{jobs[1]}), "node-a"));
  const auto replies = must(db->client_store().cancel(jobs, LockWait::some_seconds));
  ASSERT_EQ(replies.size(), 2u);
  EXPECT_EQ(replies[0].kind, CancelReply::Kind::running);
  EXPECT_EQ(replies[1].kind, CancelReply::Kind::finished);
  EXPECT_EQ(replies[1].job->status, JobStatus::done);
}

TEST_P(StoreContract, ARescheduledJobIsNotClaimedAtItsOldTime) {
  const JobId id = create(due());
  EXPECT_EQ(reschedule(id, When{{}, kLong}).kind, ChangeReply::Kind::changed);
  EXPECT_TRUE(claim({id}).empty());
  EXPECT_TRUE(must(db->store().fire(seen(Ids{id}), "node-a")).empty());
}

TEST_P(StoreContract, AClaimOfAJobMovedCloserIsWon) {
  const JobId id = create(later());
  EXPECT_TRUE(claim({id}).empty());
  run_now(id);
  EXPECT_EQ(claim({id}).size(), 1u);
}

}  // namespace
}  // namespace tocsin

// Lateness: from the later of the deadline and the moment that it was set to the first start after it, never negative.
#include "support/contract/store_fixture.h"

namespace tocsin {
namespace {

using std::chrono::seconds;

// The lateness of a job's finished row is that of its claim, whatever came in between.
void expect_same(const Job& claimed, const Job& found) {
  ASSERT_TRUE(claimed.lateness());
  EXPECT_EQ(found.lateness(), claimed.lateness());
  EXPECT_EQ(found.due_at(), claimed.due_at());
  EXPECT_EQ(found.started_at, claimed.started_at);
}

TEST_P(StoreContract, LatenessCountsFromTheDeadlineOrTheCreation) {
  NewJob past = due("past");
  past.when = at(db->now() - kLong);
  const JobId late_create = create(past);
  const ClaimedJob claimed = claim_one(late_create);
  EXPECT_TRUE(claimed.job.is_first_start());
  EXPECT_EQ(claimed.job.due_at(), claimed.job.gmt_create);
  EXPECT_LT(*claimed.job.lateness(), kLong) << "nothing can start before it is there";
  finish({late_create, claimed.token, FinishRequest::Kind::done, {}, ""});
  expect_same(claimed.job, find(late_create));
}

// `gmt_modified` of a running row is the start of its attempt. Two readings of the clock may differ by a microsecond.
TEST_P(StoreContract, AFirstAttemptStartsWhenItsJobDoes) {
  const auto jobs = create(std::vector<NewJob>(400, due("same")));
  const std::vector<JobId> some(jobs.begin(), jobs.begin() + 200);
  auto won = must(db->store().claim(seen(some), std::vector<Duration>(200, kLong), ticket())).won;
  std::ranges::move(must(db->store().claim_due(lane_of(jobs[0]), {}, 200, kLong, ticket())).won,
                    std::back_inserter(won));
  ASSERT_EQ(won.size(), 400U);
  for (const ClaimedJob& claimed : won) EXPECT_EQ(claimed.job.started_at, claimed.job.gmt_modified);
}

TEST_P(StoreContract, LatenessAfterARescheduleToThePastCountsFromTheReschedule) {
  const JobId id = create(later());
  let_pass(std::chrono::milliseconds(20));
  const WallTime before = db->now();
  const ChangeReply moved = reschedule(id, at(before - kLong));
  ASSERT_EQ(moved.kind, ChangeReply::Kind::changed);
  EXPECT_EQ(moved.job->action_time, before - kLong);
  const ClaimedJob claimed = claim_one(id);
  EXPECT_TRUE(claimed.job.is_first_start());
  EXPECT_GE(claimed.job.due_at(), before);
  EXPECT_LE(claimed.job.due_at(), *claimed.job.started_at);
  finish({id, claimed.token, FinishRequest::Kind::done, {}, ""});
  expect_same(claimed.job, find(id));
}

TEST_P(StoreContract, ARescheduleToTheFutureForgetsAnEarlierPast) {
  const JobId id = create(later());
  reschedule(id, at(db->now() - kLong));
  for (const When& when : {in(std::chrono::milliseconds(5)), at(db->now() + kLong)}) {
    const Job moved = *reschedule(id, when).job;
    EXPECT_EQ(moved.due_at(), moved.action_time);
  }
}

TEST_P(StoreContract, ARescheduleAfterAFailedAttemptStartsAnew) {
  const JobId id = create(due());
  finish({id, claim_one(id).token, FinishRequest::Kind::retry, kLong, "no"});
  const Job moved = *reschedule(id, in(std::chrono::milliseconds(5))).job;
  EXPECT_FALSE(moved.started_at) << "not since this deadline was set";
  EXPECT_EQ(moved.attempts, 1);
  db->wait_until(moved.fire_at);
  const ClaimedJob released = claim_one(id);
  EXPECT_TRUE(released.job.is_first_start());
  EXPECT_GE(*released.job.started_at, moved.action_time);
  finish({id, released.token, FinishRequest::Kind::release_claim, {}, ""});
  EXPECT_FALSE(find(id).started_at) << "it has not started after all";
  const ClaimedJob failed = claim_one(id);
  finish({id, failed.token, FinishRequest::Kind::retry, {}, "no"});
  const ClaimedJob last = claim_one(id);
  EXPECT_FALSE(last.job.is_first_start());
  EXPECT_EQ(last.job.started_at, failed.job.started_at);
  finish({id, last.token, FinishRequest::Kind::release_claim, {}, ""});
  EXPECT_EQ(find(id).started_at, failed.job.started_at);
}

TEST_P(StoreContract, AReplaceAfterAFailedAttemptStartsAnew) {
  const JobId id = create(keyed("k", in(Duration(0))));
  finish({id, claim_one(id).token, FinishRequest::Kind::retry, kLong, "no"});
  NewJob again = keyed("k", at(db->now() - kLong), R"({"n":2})");
  again.on_conflict = OnConflict::replace;
  const WallTime before = db->now();
  ASSERT_EQ(create_reply(again).kind, CreateReply::Kind::updated);
  EXPECT_FALSE(find(id).started_at);
  const ClaimedJob claimed = claim_one(id);
  EXPECT_TRUE(claimed.job.is_first_start());
  EXPECT_GE(claimed.job.due_at(), before);
  again.when = at(db->now() + kLong);
  finish({id, claimed.token, FinishRequest::Kind::retry, kLong, "no"});
  ASSERT_EQ(create_reply(again).kind, CreateReply::Kind::updated);
  EXPECT_EQ(find(id).due_at(), *again.when.at);
}

TEST_P(StoreContract, ARevivedJobCountsItsLatenessFromItsRevival) {
  const JobId id = create(due());
  kill(id);
  let_pass(std::chrono::milliseconds(20));
  const WallTime before = db->now();
  retry(id);
  const ClaimedJob claimed = claim_one(id);
  EXPECT_TRUE(claimed.job.is_first_start());
  EXPECT_GE(claimed.job.due_at(), before);
  EXPECT_GE(*claimed.job.lateness(), Duration(0));
}

TEST_P(StoreContract, LatenessIsNeverNegative) {
  const JobId id = create(later());
  run_now(id);
  const ClaimedJob claimed = claim_one(id);
  EXPECT_LT(*claimed.job.started_at, claimed.job.action_time);
  EXPECT_EQ(claimed.job.lateness(), Duration(0));
  finish({id, claimed.token, FinishRequest::Kind::retry, {}, "no"});
  reschedule(id, in(kLong));
  EXPECT_EQ(cancel(id).job->lateness(), std::nullopt);
}

TEST_P(StoreContract, AJobCancelledBetweenAttemptsShowsThatItStarted) {
  const JobId id = create(due());
  const ClaimedJob claimed = claim_one(id);
  finish({id, claimed.token, FinishRequest::Kind::retry, kLong, "no"});
  EXPECT_EQ(cancel(id).kind, CancelReply::Kind::cancelled);
  expect_same(claimed.job, find(id));
  EXPECT_EQ(find(id).attempts, 1);
}

TEST_P(StoreContract, InstantJobsCountTheirLatenessTheSameWay) {
  const JobId id = create(later());
  reschedule(id, at(db->now() - kLong));
  const auto fired = must(db->store().fire(seen({id}), "node-a"));
  ASSERT_EQ(fired.size(), 1u);
  EXPECT_EQ(find(id).due_at(), fired[0].due_at);
  EXPECT_EQ(find(id).lateness(), fired[0].started_at - fired[0].due_at);
  EXPECT_LT(*find(id).lateness(), kLong);
}

}  // namespace
}  // namespace tocsin

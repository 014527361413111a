// JobStore: finish and mark_dead.
#include "core/rfc3339.h"
#include "support/contract/store_fixture.h"

namespace tocsin {
namespace {

using FinishKind = FinishRequest::Kind;
using Ids = std::vector<JobId>;

TEST_P(StoreContract, FinishDoneMovesTheJobToHistory) {
  NewJob wanted = due();
  wanted.attribute_json = R"({"a":[1,2]})";
  const JobId id = create(wanted);
  const ClaimedJob claimed = claim_one(id);
  const WallTime before = db->now();
  EXPECT_EQ(finish({id, claimed.token, FinishKind::done, {}, ""}), FinishReply::applied);
  const Job job = find(id);
  EXPECT_EQ(job.status, JobStatus::done);
  EXPECT_EQ(job.attempts, 1);
  EXPECT_EQ(job.node, "node-a");
  EXPECT_EQ(job.action_time, claimed.job.action_time);
  EXPECT_EQ(job.gmt_create, claimed.job.gmt_create);
  EXPECT_EQ(job.started_at, claimed.job.started_at);
  EXPECT_EQ(job.attribute_json, claimed.job.attribute_json);
  ASSERT_TRUE(job.finished_at);
  EXPECT_GE(*job.finished_at, before);
  EXPECT_LE(*job.finished_at, db->now());
  EXPECT_TRUE(job.errors.empty());
}

TEST_P(StoreContract, FinishDeadKeepsTheReason) {
  const JobId id = create(due());
  const ClaimedJob claimed = claim_one(id);
  EXPECT_EQ(finish({id, claimed.token, FinishKind::dead, {}, "410 Gone"}), FinishReply::applied);
  const Job job = find(id);
  EXPECT_EQ(job.status, JobStatus::dead);
  ASSERT_TRUE(job.finished_at);
  ASSERT_EQ(job.errors.size(), 1u);
  EXPECT_EQ(job.errors[0].message, "410 Gone");
  EXPECT_EQ(job.errors[0].node, "node-a");
  EXPECT_EQ(job.errors[0].attempt, 1);
  EXPECT_EQ(job.errors[0].at.size(), std::string("2026-03-01T12:00:00.000000Z").size());
  EXPECT_EQ(job.errors[0].at.back(), 'Z');
}

TEST_P(StoreContract, FinishRetryMakesTheJobPendingAfterItsDelay) {
  const JobId id = create(due());
  const ClaimedJob claimed = claim_one(id);
  const Duration delay = std::chrono::minutes(5);
  const WallTime before = db->now();
  EXPECT_EQ(finish({id, claimed.token, FinishKind::retry, delay, "503"}), FinishReply::applied);
  const Job job = find(id);
  EXPECT_EQ(job.status, JobStatus::pending);
  EXPECT_EQ(job.attempts, 1);
  EXPECT_GE(job.fire_at, before + delay);
  EXPECT_LE(job.fire_at, db->now() + delay);
  EXPECT_EQ(job.action_time, claimed.job.action_time);
  EXPECT_EQ(job.started_at, claimed.job.started_at);
  EXPECT_FALSE(job.finished_at);
  ASSERT_EQ(job.errors.size(), 1u);
  EXPECT_EQ(job.errors[0].message, "503");
  EXPECT_TRUE(claim({id}).empty());
}

TEST_P(StoreContract, EveryAttemptHasItsStart) {
  const JobId id = create(due());
  const ClaimedJob first = claim_one(id);
  EXPECT_EQ(first.job.last_started_at, first.job.gmt_modified);
  EXPECT_EQ(finish({id, first.token, FinishKind::retry, Duration(0), "503"}), FinishReply::applied);
  EXPECT_FALSE(find(id).last_started_at) << "none runs";
  const ClaimedJob second = claim_and_expire(id);
  const ClaimedJob third = claim_one(id);
  EXPECT_EQ(find(id).last_started_at, third.job.gmt_modified);
  EXPECT_EQ(finish({id, third.token, FinishKind::done, {}, ""}), FinishReply::applied);
  const Job job = find(id);
  EXPECT_EQ(job.started_at, first.job.started_at);
  EXPECT_EQ(job.last_started_at, third.job.gmt_modified);
  ASSERT_EQ(job.errors.size(), 2U);
  EXPECT_EQ(job.errors[0].started_at, rfc3339(first.job.gmt_modified));
  EXPECT_EQ(job.errors[1].started_at, rfc3339(second.job.gmt_modified)) << "its lease ended";
}

TEST_P(StoreContract, TheFirstAttemptOfADoneJobIsItsLast) {
  const JobId id = create(due());
  const ClaimedJob claimed = claim_one(id);
  EXPECT_EQ(finish({id, claimed.token, FinishKind::done, {}, ""}), FinishReply::applied);
  EXPECT_EQ(find(id).last_started_at, claimed.job.started_at);
  const JobId dead = create(due());
  const ClaimedJob failed = claim_one(dead);
  EXPECT_EQ(finish({dead, failed.token, FinishKind::dead, {}, "410 Gone"}), FinishReply::applied);
  EXPECT_FALSE(find(dead).last_started_at) << "its errors say so";
  EXPECT_EQ(find(dead).errors.at(0).started_at, rfc3339(failed.job.gmt_modified));
}

TEST_P(StoreContract, FinishRetryWithoutDelayIsDueAgain) {
  const JobId id = create(due());
  EXPECT_EQ(finish({id, claim_one(id).token, FinishKind::retry, Duration(0), "again"}), FinishReply::applied);
  const ClaimedJob second = claim_one(id);
  EXPECT_EQ(second.job.attempts, 2);
  ASSERT_EQ(second.job.errors.size(), 1u);
}

TEST_P(StoreContract, FinishReleaseDoesNotCountTheAttempt) {
  NewJob once = due();
  once.max_attempts = 1;
  const JobId id = create(once);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(finish({id, claim_one(id).token, FinishKind::release_claim, {}, ""}), FinishReply::applied);
    const Job job = find(id);
    EXPECT_EQ(job.status, JobStatus::pending);
    EXPECT_EQ(job.attempts, 0);
    EXPECT_LE(job.fire_at, db->now());
    EXPECT_FALSE(job.started_at) << "it never started";
    EXPECT_TRUE(job.errors.empty());
  }
  EXPECT_EQ(claim_one(id).job.attempts, 1);
}

TEST_P(StoreContract, FinishReleaseReturnsAJobToAnEarlierTime) {
  NewJob past = due();
  past.when = at(db->now() - kLong);
  const JobId id = create(past);
  const WallTime before = db->now();
  finish({id, claim_one(id).token, FinishKind::release_claim, std::chrono::seconds(-3), ""});
  EXPECT_GE(find(id).fire_at, before - std::chrono::seconds(3));
  EXPECT_LE(find(id).fire_at, db->now() - std::chrono::seconds(3));
  EXPECT_EQ(claim_one(id).job.attempts, 1);
}

TEST_P(StoreContract, FinishReleaseOfALaterAttemptKeepsTheEarlierOnes) {
  const JobId id = create(due());
  const ClaimedJob first = claim_one(id);
  finish({id, first.token, FinishKind::retry, Duration(0), "one"});
  finish({id, claim_one(id).token, FinishKind::release_claim, {}, ""});
  const Job job = find(id);
  EXPECT_EQ(job.attempts, 1);
  EXPECT_EQ(job.started_at, first.job.started_at);
  EXPECT_EQ(job.errors.size(), 1u);
}

TEST_P(StoreContract, FinishWithAForeignTokenChangesNothing) {
  const JobId id = create(due());
  const ClaimedJob claimed = claim_one(id);
  const Job before = find(id);
  for (const FinishKind kind : {FinishKind::done, FinishKind::dead, FinishKind::retry, FinishKind::release_claim})
    EXPECT_EQ(finish({id, claimed.token ^ 1, kind, {}, "not mine"}), FinishReply::stale);
  const Job after = find(id);
  EXPECT_EQ(after.status, JobStatus::running);
  EXPECT_EQ(after.fire_at, before.fire_at);
  EXPECT_EQ(after.gmt_modified, before.gmt_modified);
  EXPECT_EQ(after.attempts, 1);
  EXPECT_TRUE(after.errors.empty());
}

TEST_P(StoreContract, FinishAfterAnotherClaimIsStale) {
  const JobId id = create(due());
  const ClaimedJob first = claim_and_expire(id);
  const ClaimedJob second = claim_one(id);
  for (const FinishKind kind : {FinishKind::done, FinishKind::dead, FinishKind::retry, FinishKind::release_claim})
    EXPECT_EQ(finish({id, first.token, kind, {}, "too late"}), FinishReply::stale);
  EXPECT_EQ(find(id).attempts, 2);
  EXPECT_EQ(finish({id, second.token, FinishKind::done, {}, ""}), FinishReply::applied);
}

TEST_P(StoreContract, FinishAfterTheLeaseAppliesUntilAnotherClaim) {
  const Ids jobs = create({due("a"), due("b")});
  const ClaimedJob late = claim_and_expire(jobs[0]);
  EXPECT_EQ(finish({jobs[0], late.token, FinishKind::done, {}, ""}), FinishReply::applied);
  const ClaimedJob unstarted = claim_and_expire(jobs[1]);
  EXPECT_EQ(finish({jobs[1], unstarted.token, FinishKind::release_claim, {}, ""}), FinishReply::applied);
  EXPECT_EQ(find(jobs[1]).attempts, 0);
}

TEST_P(StoreContract, FinishIsSafeToRepeat) {
  const Ids jobs = create({due("a"), due("b"), due("c"), due("d")});
  std::vector<FinishRequest> requests;
  const FinishKind kinds[] = {FinishKind::done, FinishKind::dead, FinishKind::retry, FinishKind::release_claim};
  for (std::size_t i = 0; i < 4; ++i) requests.push_back({jobs[i], claim_one(jobs[i]).token, kinds[i], kLong, "why"});
  EXPECT_EQ(must(db->store().finish(requests, "node-a")), std::vector(4, FinishReply::applied));
  EXPECT_EQ(must(db->store().finish(requests, "node-a")), std::vector(4, FinishReply::stale));
  EXPECT_EQ(find(jobs[2]).errors.size(), 1u);
  EXPECT_EQ(find(jobs[3]).attempts, 0);
}

TEST_P(StoreContract, FinishAnswersInTheOrderOfItsRequests) {
  std::vector<NewJob> wanted;
  for (int i = 0; i < 40; ++i) wanted.push_back(due("order-" + std::to_string(i)));
  const Ids jobs = create(wanted);
  std::map<JobId, ClaimToken> tokens;
  for (const ClaimedJob& claimed : claim(jobs)) tokens[claimed.job.job_id] = claimed.token;
  const FinishKind kinds[] = {FinishKind::done, FinishKind::dead, FinishKind::retry, FinishKind::release_claim};
  std::vector<FinishRequest> requests;
  std::vector<FinishReply> expected;
  for (std::size_t i = 40; i-- > 0;) {
    const bool is_stale = i % 3 == 0;
    requests.push_back({jobs[i], is_stale ? 42 : tokens[jobs[i]], kinds[i % 4], kLong, "why"});
    expected.push_back(is_stale ? FinishReply::stale : FinishReply::applied);
  }
  requests.push_back({make_job_id(123'456, 1), 7, FinishKind::done, {}, ""});
  expected.push_back(FinishReply::stale);
  EXPECT_EQ(must(db->store().finish(requests, "node-a")), expected);
}

TEST_P(StoreContract, FinishOfTheSameClaimTwiceInOneCallAppliesOnce) {
  const JobId id = create(due());
  const FinishRequest request{id, claim_one(id).token, FinishKind::retry, kLong, "once"};
  const auto replies = must(db->store().finish(std::vector{request, request}, "node-a"));
  ASSERT_EQ(replies.size(), 2u);
  EXPECT_TRUE(replies[0] == FinishReply::applied || replies[1] == FinishReply::applied);
  EXPECT_EQ(find(id).errors.size(), 1u);
}

TEST_P(StoreContract, FinishOfALockedRowIsBusyAndAppliesLater) {
  const Ids jobs = create({due("a"), due("b")});
  std::vector<FinishRequest> requests;
  for (const JobId id : jobs) requests.push_back({id, claim_one(id).token, FinishKind::done, {}, ""});
  db->lock(jobs[0]);
  EXPECT_EQ(must(db->store().finish(requests, "node-a")), (std::vector{FinishReply::busy, FinishReply::applied}));
  db->unlock();
  EXPECT_EQ(must(db->store().finish(requests, "node-a")), (std::vector{FinishReply::applied, FinishReply::stale}));
}

TEST_P(StoreContract, FinishOfNothingIsNothing) { EXPECT_TRUE(must(db->store().finish({}, "node-a")).empty()); }

TEST_P(StoreContract, FinishKeepsTheLastSixteenErrors) {
  NewJob job = due();
  job.max_attempts = 100;
  const JobId id = create(job);
  for (int i = 1; i <= 20; ++i)
    finish({id, claim_one(id).token, FinishKind::retry, Duration(0), "failure " + std::to_string(i)});
  const Job stored = find(id);
  ASSERT_EQ(stored.errors.size(), 16u);
  EXPECT_EQ(stored.errors.front().message, "failure 5");
  EXPECT_EQ(stored.errors.back().message, "failure 20");
  EXPECT_EQ(stored.errors.back().attempt, 20);
}

TEST_P(StoreContract, FinishStoresUnusualMessagesUnchanged) {
  const std::vector<std::string> strange = {"",
                                            "NULL",
                                            "null",
                                            "\"quoted\" and 'quoted'",
                                            "back\\slash \\n \\x41 \\\\",
                                            "line\nbreak\r\n\ttab",
                                            "{curly,[square]}, comma",
                                            "\xc3\xa9\xe6\xbc\xa2\xf0\x9f\x94\x94",
                                            "%s $1 :name ?",
                                            "{}",
                                            "\x01\x1f\x7f",
                                            std::string(3000, 'x')};
  std::vector<NewJob> wanted;
  for (std::size_t i = 0; i < strange.size(); ++i) wanted.push_back(due("order-" + std::to_string(i)));
  const Ids jobs = create(wanted);
  std::map<JobId, ClaimToken> tokens;
  for (const ClaimedJob& claimed : claim(jobs)) tokens[claimed.job.job_id] = claimed.token;
  std::vector<FinishRequest> requests;
  for (std::size_t i = 0; i < strange.size(); ++i)
    requests.push_back({jobs[i], tokens[jobs[i]], i % 2 ? FinishKind::retry : FinishKind::dead, kLong, strange[i]});
  EXPECT_EQ(must(db->store().finish(requests, "node 'a', {b}")), std::vector(strange.size(), FinishReply::applied));
  for (std::size_t i = 0; i < strange.size(); ++i) {
    const Job job = find(jobs[i]);
    ASSERT_EQ(job.errors.size(), 1u);
    EXPECT_EQ(job.errors[0].message, strange[i]);
    EXPECT_EQ(job.errors[0].node, "node 'a', {b}");
  }
}

TEST_P(StoreContract, FinishTakesTenThousandOutcomesAtOnce) {
  std::vector<NewJob> wanted;
  for (int i = 0; i < 10'000; ++i) wanted.push_back(due("order-" + std::to_string(i)));
  const Ids jobs = create(wanted);
  std::vector<FinishRequest> requests;
  for (const ClaimedJob& claimed : claim(jobs))
    requests.push_back({claimed.job.job_id, claimed.token, FinishKind::done, {}, ""});
  ASSERT_EQ(requests.size(), 10'000u);
  EXPECT_EQ(must(db->store().finish(requests, "node-a")), std::vector(10'000, FinishReply::applied));
  EXPECT_EQ(counts_of(type_id), (std::map<JobStatus, std::int64_t>{{JobStatus::done, 10'000}}));
}

// mark_dead
// ---------------------------------------------------------------------------------------------------------------

TEST_P(StoreContract, MarkDeadTakesJobsWhoseLastLeaseHasEnded) {
  NewJob job = due();
  job.max_attempts = 1;
  const JobId id = create(job);
  const ClaimedJob last = claim_and_expire(id);
  EXPECT_EQ(must(db->store().mark_dead(Ids{id})), 1);
  const Job stored = find(id);
  EXPECT_EQ(stored.status, JobStatus::dead);
  EXPECT_EQ(stored.attempts, 1);
  ASSERT_TRUE(stored.finished_at);
  ASSERT_EQ(stored.errors.size(), 1u) << "the record says why";
  EXPECT_EQ(stored.errors[0].node, "node-a");
  EXPECT_EQ(must(db->store().mark_dead(Ids{id})), 0);
  EXPECT_EQ(finish({id, last.token, FinishKind::done, {}, ""}), FinishReply::stale);
}

TEST_P(StoreContract, MarkDeadLeavesAllOthersAlone) {
  NewJob once = due("once");
  once.max_attempts = 1;
  NewJob future = later("future");
  future.max_attempts = 1;
  const JobId held = create(once), pending = create(future), retried = create(due("retried")), locked = create(once),
              done = create(due("done"));
  claim_one(held, kLong);
  claim_and_expire(retried);  // attempts are left
  claim_and_expire(locked);
  must(db->store().fire(seen(Ids{done}), "node-a"));
  db->lock(locked);
  EXPECT_EQ(must(db->store().mark_dead(Ids{held, pending, retried, locked, done, make_job_id(9'999, 0)})), 0);
  db->unlock();
  EXPECT_EQ(find(held).status, JobStatus::running);
  EXPECT_EQ(find(pending).status, JobStatus::pending);
  EXPECT_EQ(find(retried).status, JobStatus::running);
  EXPECT_EQ(find(done).status, JobStatus::done);
  EXPECT_EQ(must(db->store().mark_dead(Ids{held, locked, locked})), 1);
}

TEST_P(StoreContract, MarkDeadOfNothingIsNothing) { EXPECT_EQ(must(db->store().mark_dead({})), 0); }

}  // namespace
}  // namespace tocsin

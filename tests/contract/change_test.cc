// ClientStore: cancel, cancel_all, reschedule, run_now, retry, retry_many.
#include <algorithm>
#include <set>

#include "support/contract/store_fixture.h"

namespace tocsin {
namespace {

using Ids = std::vector<JobId>;

TEST_P(StoreContract, CancelMovesAPendingJobToHistory) {
  NewJob wanted = later();
  wanted.attribute_json = R"("kept")";
  const JobId id = create(wanted);
  const WallTime before = db->now();
  const CancelReply reply = cancel(id);
  EXPECT_EQ(reply.kind, CancelReply::Kind::cancelled);
  EXPECT_EQ(reply.job_id, id);
  ASSERT_TRUE(reply.job);
  for (const Job& job : {*reply.job, find(id)}) {
    EXPECT_EQ(job.job_id, id);
    EXPECT_EQ(job.status, JobStatus::cancelled);
    EXPECT_EQ(job.biz_id, "order-1");
    EXPECT_EQ(job.attribute_json, R"("kept")");
    EXPECT_EQ(job.attempts, 0);
    ASSERT_TRUE(job.finished_at);
    EXPECT_GE(*job.finished_at, before);
  }
}

TEST_P(StoreContract, CancelAnswersEachIdInOrder) {
  const Ids jobs = create({later("a"), due("b"), due("c"), due("d"), later("e")});
  const JobId unknown = make_job_id(777'777, 0), no_shard = make_job_id(777'777, 1000);
  claim_one(jobs[1]);
  must(db->store().fire(seen(Ids{jobs[2]}), "node-a"));
  kill(jobs[3]);
  cancel(jobs[4]);
  const Ids asked = {unknown, jobs[3], jobs[2], jobs[1], jobs[0], jobs[4], no_shard};
  const auto replies = must(db->client_store().cancel(asked, LockWait::some_seconds));
  ASSERT_EQ(replies.size(), asked.size());
  using K = CancelReply::Kind;
  const std::vector<K> expected = {K::not_found, K::finished, K::finished, K::running,
                                   K::cancelled, K::finished, K::not_found};
  for (std::size_t i = 0; i < asked.size(); ++i) {
    EXPECT_EQ(replies[i].job_id, asked[i]);
    EXPECT_EQ(replies[i].kind, expected[i]) << i;
    EXPECT_EQ(replies[i].job.has_value(), expected[i] != K::not_found);
    if (replies[i].job) {
      EXPECT_EQ(replies[i].job->job_id, asked[i]);
    }
  }
  EXPECT_EQ(replies[1].job->status, JobStatus::dead);
  EXPECT_EQ(replies[2].job->status, JobStatus::done);
  EXPECT_EQ(replies[3].job->status, JobStatus::running);
  EXPECT_EQ(replies[5].job->status, JobStatus::cancelled);
  EXPECT_EQ(find(jobs[1]).status, JobStatus::running);
}

TEST_P(StoreContract, CancelOfARunningJobWhoseLeaseEndedIsStillRunning) {
  const JobId id = create(due());
  claim_and_expire(id);
  EXPECT_EQ(cancel(id).kind, CancelReply::Kind::running);
}

TEST_P(StoreContract, CancelOfAJobThatWaitsForItsRetryWorks) {
  const JobId id = create(due());
  finish({id, claim_one(id).token, FinishRequest::Kind::retry, kLong, "no"});
  const CancelReply reply = cancel(id);
  EXPECT_EQ(reply.kind, CancelReply::Kind::cancelled);
  ASSERT_TRUE(reply.job);
  EXPECT_EQ(reply.job->attempts, 1);
  EXPECT_EQ(reply.job->errors.size(), 1u);
}

TEST_P(StoreContract, CancelTwiceSaysFinished) {
  const JobId id = create(later());
  EXPECT_EQ(cancel(id).kind, CancelReply::Kind::cancelled);
  EXPECT_EQ(cancel(id).kind, CancelReply::Kind::finished);
}

TEST_P(StoreContract, CancelOfAnIdGivenTwiceCancelsOnce) {
  const JobId id = create(later());
  const auto replies = must(db->client_store().cancel(Ids{id, id}, LockWait::some_seconds));
  ASSERT_EQ(replies.size(), 2u);
  EXPECT_EQ(replies[0].kind, CancelReply::Kind::cancelled);
  EXPECT_EQ(replies[1].kind, CancelReply::Kind::finished) << "exactly one is told that it cancelled the job";
  ASSERT_TRUE(replies[1].job);
  EXPECT_EQ(replies[1].job->status, JobStatus::cancelled);
  EXPECT_EQ(counts_of(type_id), (std::map<JobStatus, std::int64_t>{{JobStatus::cancelled, 1}}));
}

TEST_P(StoreContract, CancelOfALockedRowIsBusyAndFailsNoOther) {
  const JobId id = create(later());
  db->lock(id);
  for (const LockWait wait : {LockWait::none, LockWait::some_seconds}) {
    const JobId other = create(later("order-2"));
    const auto replies = must(db->client_store().cancel(Ids{id, other}, wait));
    EXPECT_EQ(replies[0].kind, CancelReply::Kind::locked);
    EXPECT_EQ(replies[1].kind, CancelReply::Kind::cancelled) << "one locked row spoils no other answer";
  }
  db->unlock();
  EXPECT_EQ(find(id).status, JobStatus::pending);
}

TEST_P(StoreContract, CancelTakesTenThousandJobsAtOnce) {
  std::vector<NewJob> wanted;
  for (int i = 0; i < 10'000; ++i) wanted.push_back(later("order-" + std::to_string(i)));
  const Ids jobs = create(wanted);
  const auto replies = must(db->client_store().cancel(jobs, LockWait::some_seconds));
  ASSERT_EQ(replies.size(), 10'000u);
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    ASSERT_EQ(replies[i].job_id, jobs[i]);
    ASSERT_EQ(replies[i].kind, CancelReply::Kind::cancelled);
  }
}

TEST_P(StoreContract, CancelOfNothingIsNothing) {
  EXPECT_TRUE(must(db->client_store().cancel({}, LockWait::some_seconds)).empty());
}

TEST_P(StoreContract, CancelAllTakesTheJobsOfOneBusinessKey) {
  NewJob foreign = later("same");
  foreign.type_id = other_type_id;
  const Ids jobs = create({later("same"), later("same"), foreign, later("another"), due("same")});
  claim_one(jobs[4]);
  const auto of_type = must(db->client_store().cancel_all("same", type_id));
  std::set<JobId> cancelled, running;
  EXPECT_FALSE(of_type.has_more);
  for (const CancelReply& reply : of_type.jobs) {
    if (reply.kind == CancelReply::Kind::cancelled) cancelled.insert(reply.job_id);
    if (reply.kind == CancelReply::Kind::running) running.insert(reply.job_id);
    ASSERT_TRUE(reply.job);
    EXPECT_EQ(reply.job->job_id, reply.job_id);
  }
  EXPECT_EQ(cancelled, (std::set<JobId>{jobs[0], jobs[1]}));
  EXPECT_EQ(running, std::set<JobId>{jobs[4]});
  EXPECT_EQ(find(jobs[2]).status, JobStatus::pending);
  EXPECT_EQ(find(jobs[3]).status, JobStatus::pending);

  cancelled.clear();
  for (const CancelReply& reply : must(db->client_store().cancel_all("same", std::nullopt)).jobs)
    if (reply.kind == CancelReply::Kind::cancelled) cancelled.insert(reply.job_id);
  EXPECT_EQ(cancelled, std::set<JobId>{jobs[2]});
  EXPECT_EQ(find(jobs[3]).status, JobStatus::pending);
  EXPECT_TRUE(must(db->client_store().cancel_all("nobody", std::nullopt)).jobs.empty());
}

TEST_P(StoreContract, CancelAllBeginsWithTheLiveJobsHoweverManyHaveEnded) {
  const JobId oldest = create(later("same"));
  NewJob foreign = later("same");
  foreign.type_id = other_type_id;
  const std::vector<NewJob> many(ClientStore::kMostOfOneKey, foreign);
  create(many);
  EXPECT_EQ(must(db->client_store().cancel_all("same", type_id)).jobs.size(), 1u) << "others hide nothing";
  EXPECT_EQ(find(oldest).status, JobStatus::cancelled);
  EXPECT_EQ(must(db->client_store().cancel_all("same", other_type_id)).jobs.size(), ClientStore::kMostOfOneKey);
  const JobId last = create(later("same"));
  const CancelAllReply reply = must(db->client_store().cancel_all("same", std::nullopt));
  EXPECT_FALSE(reply.has_more) << "the live one was among them";
  const auto& replies = reply.jobs;
  EXPECT_EQ(replies.size(), 1 + ClientStore::kMostNamed);
  EXPECT_TRUE(reply.has_more_finished);
  EXPECT_EQ(replies.front().job_id, last);
  EXPECT_EQ(replies.front().kind, CancelReply::Kind::cancelled);
  EXPECT_EQ(replies.back().kind, CancelReply::Kind::finished);
}

// The jobs of another type do not hide what there is of a type: the answer says that it is not all.
TEST_P(StoreContract, CancelAllSaysThatMoreHaveEndedThanItNames) {
  const JobId old = create(later("same"));
  cancel(old);
  NewJob foreign = later("same");
  foreign.type_id = other_type_id;
  create(std::vector<NewJob>(ClientStore::kMostNamed - 1, foreign));
  const CancelAllReply all = must(db->client_store().cancel_all("same", other_type_id));
  EXPECT_FALSE(all.has_more_finished);
  const CancelAllReply one = must(db->client_store().cancel_all("same", type_id));
  EXPECT_FALSE(one.has_more_finished);
  ASSERT_EQ(one.jobs.size(), 1u) << "it is the last of those that are looked at";
  EXPECT_EQ(one.jobs[0].job_id, old);
  cancel(create(foreign));
  const CancelAllReply none = must(db->client_store().cancel_all("same", type_id));
  EXPECT_TRUE(none.jobs.empty());
  EXPECT_TRUE(none.has_more_finished);
}

TEST_P(StoreContract, CancelAllSkipsLockedJobs) {
  const Ids jobs = create({later("same"), later("same"), later("same")});
  db->lock(jobs[1]);
  const CancelAllReply reply = must(db->client_store().cancel_all("same", type_id));
  db->unlock();
  using K = CancelReply::Kind;
  ASSERT_EQ(reply.jobs.size(), 3u);
  const std::vector<K> expected = {K::cancelled, K::locked, K::cancelled};
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    EXPECT_EQ(reply.jobs[i].job_id, jobs[i]);
    EXPECT_EQ(reply.jobs[i].kind, expected[i]) << i;
  }
}

TEST_P(StoreContract, CancelAllSaysThatLiveJobsAreLeft) {
  const JobId running = create(due("same"));
  claim_one(running);
  create(std::vector<NewJob>(ClientStore::kMostOfOneKey, later("same")));
  const JobId last = create(later("same"));
  const CancelAllReply first = must(db->client_store().cancel_all("same", type_id));
  EXPECT_TRUE(first.has_more);
  EXPECT_TRUE(std::ranges::all_of(first.jobs, [](const CancelReply& reply) {
    return reply.kind == CancelReply::Kind::cancelled;
  })) << "pending ones come first";
  const CancelAllReply second = must(db->client_store().cancel_all("same", type_id));
  EXPECT_FALSE(second.has_more);
  EXPECT_EQ(second.jobs[0].job_id, last);
  EXPECT_EQ(second.jobs[0].kind, CancelReply::Kind::cancelled);
  EXPECT_EQ(second.jobs[1].kind, CancelReply::Kind::running);
}

// reschedule ---------------------------------------------------------------------------------------------------------

TEST_P(StoreContract, RescheduleGivesAPendingJobANewDeadline) {
  const JobId id = create(later());
  const WallTime time = db->now() + std::chrono::hours(5);
  const ChangeReply reply = reschedule(id, at(time));
  EXPECT_EQ(reply.kind, ChangeReply::Kind::changed);
  ASSERT_TRUE(reply.job);
  for (const Job& job : {*reply.job, find(id)}) {
    EXPECT_EQ(job.action_time, time);
    EXPECT_EQ(job.fire_at, time);
    EXPECT_EQ(job.status, JobStatus::pending);
  }
}

TEST_P(StoreContract, RescheduleByARelativeTimeCountsFromTheDatabaseClock) {
  const JobId id = create(later());
  const WallTime before = db->now();
  const ChangeReply reply = reschedule(id, in(std::chrono::minutes(1)));
  EXPECT_GE(reply.job->fire_at, before + std::chrono::minutes(1));
  EXPECT_LE(reply.job->fire_at, db->now() + std::chrono::minutes(1));
  EXPECT_EQ(reply.job->fire_at, reply.job->action_time);
}

TEST_P(StoreContract, RescheduleIntoThePastIsDueAtOnce) {
  const JobId id = create(later());
  const WallTime past = db->now() - kLong;
  EXPECT_EQ(reschedule(id, at(past)).job->action_time, past);
  EXPECT_EQ(claim({id}).size(), 1u);
}

TEST_P(StoreContract, RescheduleRunNowAndRetrySayWhyTheyRefuse) {
  const Ids jobs = create({due("a"), due("b"), later("c"), later("d")});
  claim_one(jobs[0]);
  must(db->store().fire(seen(Ids{jobs[1]}), "node-a"));
  cancel(jobs[2]);
  const std::vector<std::pair<JobId, ChangeReply::Kind>> refused = {
      {jobs[0], ChangeReply::Kind::running},
      {jobs[1], ChangeReply::Kind::finished},
      {jobs[2], ChangeReply::Kind::finished},
      {make_job_id(424'242, 1), ChangeReply::Kind::not_found}};
  for (const auto& [id, kind] : refused) {
    for (const ChangeReply& reply : {reschedule(id, in(kLong)), run_now(id), retry(id)}) {
      EXPECT_EQ(reply.kind, kind);
      EXPECT_EQ(reply.job.has_value(), kind != ChangeReply::Kind::not_found);
      if (reply.job) {
        EXPECT_EQ(reply.job->job_id, id);
      }
    }
  }
  EXPECT_EQ(retry(jobs[3]).kind, ChangeReply::Kind::pending);
  EXPECT_EQ(find(jobs[0]).status, JobStatus::running);
  EXPECT_EQ(find(jobs[1]).status, JobStatus::done);
  EXPECT_EQ(find(jobs[2]).status, JobStatus::cancelled);
}

TEST_P(StoreContract, RescheduleAndRunNowOfADeadJobAreRefused) {
  const JobId id = create(due());
  kill(id);
  EXPECT_EQ(reschedule(id, in(kLong)).kind, ChangeReply::Kind::finished);
  EXPECT_EQ(run_now(id).kind, ChangeReply::Kind::finished);
  EXPECT_EQ(find(id).status, JobStatus::dead);
}

TEST_P(StoreContract, RunNowMakesAJobDueAndKeepsItsDeadline) {
  const JobId id = create(later());
  const WallTime deadline = find(id).action_time;
  const WallTime before = db->now();
  const ChangeReply reply = run_now(id);
  EXPECT_EQ(reply.kind, ChangeReply::Kind::changed);
  EXPECT_EQ(reply.job->action_time, deadline);
  EXPECT_GE(reply.job->fire_at, before);
  EXPECT_LE(reply.job->fire_at, db->now());
  EXPECT_EQ(claim_one(id).job.action_time, deadline);
}

// retry --------------------------------------------------------------------------------------------------------------

TEST_P(StoreContract, RetryMakesADeadJobPendingAgain) {
  NewJob wanted = due();
  wanted.max_attempts = 1;
  wanted.attribute_json = R"("kept")";
  wanted.traceparent = "trace";
  const JobId id = create(wanted);
  kill(id, "first death");
  const WallTime before = db->now();
  const ChangeReply reply = retry(id);
  EXPECT_EQ(reply.kind, ChangeReply::Kind::changed);
  ASSERT_TRUE(reply.job);
  for (const Job& job : {*reply.job, find(id)}) {
    EXPECT_EQ(job.job_id, id);
    EXPECT_EQ(job.status, JobStatus::pending);
    EXPECT_EQ(job.attempts, 0);
    EXPECT_GE(job.fire_at, before);
    EXPECT_LE(job.fire_at, db->now());
    EXPECT_FALSE(job.finished_at);
    EXPECT_EQ(job.attribute_json, R"("kept")");
    EXPECT_EQ(job.traceparent, "trace");
    ASSERT_EQ(job.errors.size(), 1u);
    EXPECT_EQ(job.errors[0].message, "first death");
  }
  EXPECT_EQ(retry(id).kind, ChangeReply::Kind::pending);
  kill(id, "second death");
  const Job dead = find(id);
  EXPECT_EQ(dead.attempts, 1);
  EXPECT_EQ(dead.errors.size(), 2u);
}

TEST_P(StoreContract, RetryEachReportsARevivalToOneCaller) {
  const JobId dead = create(due("a")), pending = create(due("b"));
  kill(dead, "no");
  const std::vector<JobId> ids{dead, pending, dead, 77 * 1024};
  const auto replies = must(db->client_store().retry_each(ids));
  ASSERT_EQ(replies.size(), 4U);
  EXPECT_EQ(must(replies[0]).kind, ChangeReply::Kind::changed);
  EXPECT_EQ(must(replies[1]).kind, ChangeReply::Kind::pending);
  EXPECT_EQ(must(replies[2]).kind, ChangeReply::Kind::pending);
  EXPECT_EQ(must(replies[3]).kind, ChangeReply::Kind::not_found);
  EXPECT_EQ(find(dead).attempts, 0);
}

TEST_P(StoreContract, RetryEachWaitsForNoLockedRow) {
  const JobId held = create(due("a")), free = create(due("b"));
  kill(held, "no"), kill(free, "no");
  db->lock(held);
  const std::vector<JobId> ids{held, free};
  const auto replies = must(db->client_store().retry_each(ids));
  EXPECT_EQ(must(replies[0]).kind, ChangeReply::Kind::locked);
  EXPECT_EQ(must(replies[1]).kind, ChangeReply::Kind::changed);
  db->unlock();
  EXPECT_EQ(retry(held).kind, ChangeReply::Kind::changed);
}

TEST_P(StoreContract, RetryManyTakesTheOldestDeadOfATypeUpToItsLimit) {
  Ids jobs;
  for (int i = 0; i < 6; ++i) jobs.push_back(create(due("order-" + std::to_string(i))));
  NewJob foreign = due("foreign");
  foreign.type_id = other_type_id;
  const JobId other = create(foreign), cancelled = create(later("cancelled"));
  for (const JobId id : jobs) kill(id), let_pass(kShort);
  kill(other);
  cancel(cancelled);
  ClientStore::RetryMany request;
  request.type_id = type_id;
  request.limit = 4;
  EXPECT_EQ(must(db->client_store().retry_many(request)), 4);
  for (std::size_t i = 0; i < 6; ++i)
    EXPECT_EQ(find(jobs[i]).status, i < 4 ? JobStatus::pending : JobStatus::dead) << i;
  EXPECT_EQ(find(other).status, JobStatus::dead);
  EXPECT_EQ(find(cancelled).status, JobStatus::cancelled);
  EXPECT_EQ(must(db->client_store().retry_many(request)), 2);
  EXPECT_EQ(must(db->client_store().retry_many(request)), 0);
  for (const JobId id : jobs) {
    const Job job = find(id);
    EXPECT_EQ(job.attempts, 0);
    EXPECT_EQ(job.errors.size(), 1u);
  }
  EXPECT_EQ(claim(jobs).size(), 6u) << "without a rate all are due at once";
}

TEST_P(StoreContract, RetryManyAppliesItsTimeRange) {
  Ids jobs;
  for (int i = 0; i < 4; ++i) {
    jobs.push_back(create(due("order-" + std::to_string(i))));
    kill(jobs.back());
    let_pass(kShort);
  }
  ClientStore::RetryMany request;
  request.type_id = type_id;
  request.from = find(jobs[1]).finished_at;
  request.to = find(jobs[3]).finished_at;
  EXPECT_EQ(must(db->client_store().retry_many(request)), 2);
  const std::vector<JobStatus> expected = {JobStatus::dead, JobStatus::pending, JobStatus::pending, JobStatus::dead};
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(find(jobs[i]).status, expected[i]) << i;
}

TEST_P(StoreContract, RetryManySpreadsTheJobsAtTheRequestedRate) {
  Ids jobs;
  for (int i = 0; i < 10; ++i) {
    jobs.push_back(create(due("order-" + std::to_string(i))));
    kill(jobs.back());
  }
  ClientStore::RetryMany request;
  request.type_id = type_id;
  request.rate_per_s = 2;
  const WallTime before = db->now();
  EXPECT_EQ(must(db->client_store().retry_many(request)), 10);
  std::vector<WallTime> times;
  for (const JobId id : jobs) times.push_back(find(id).fire_at);
  std::ranges::sort(times);
  EXPECT_GE(times.front(), before);
  EXPECT_LE(times.back(), before + std::chrono::seconds(10));
  for (std::size_t i = 0; i + 2 < times.size(); ++i) EXPECT_GE(times[i + 2] - times[i], std::chrono::milliseconds(999));
}

}  // namespace
}  // namespace tocsin

// JobStore: what is too late to run, and claims that end at a time.
#include "support/contract/store_fixture.h"

namespace tocsin {
namespace {

TEST_P(StoreContract, DropTooLateSkipsTypesWithoutALatenessLimit) {
  const JobId id = create(due());
  let_pass(2 * kShort);
  EXPECT_EQ(must(db->store().drop_too_late(lane_of(id), db->now(), 10, 0, "node-a")), 0);
  EXPECT_EQ(find(id).status, JobStatus::pending);
}

TEST_P(StoreContract, DropTooLateJudgesLatenessByTheDatabaseClock) {
  BizType type;
  type.name = "order.unpaid";
  type.handler_kind = "noop";
  type.handler_json = R"({"kind":"noop"})";
  type.drop_older_than = kLong;
  must(db->types().put(type));
  const JobId id = create(due());
  EXPECT_EQ(must(db->store().drop_too_late(lane_of(id), db->now() + kLong, 10, 0, "node-a")), 0);
  EXPECT_EQ(find(id).status, JobStatus::pending);
}

TEST_P(StoreContract, DropTooLateMarksEarlierJobsDeadWithAReason) {
  set_lateness_limit();
  const JobId old = create(due("same"));
  let_pass(kShort);
  const WallTime before = db->now();
  const JobId young = create(due("same"));
  NewJob foreign = due("same");
  foreign.type_id = other_type_id;
  const JobId other = create(foreign);
  let_pass(2 * kShort);
  EXPECT_EQ(must(db->store().drop_too_late(lane_of(old), before, 10, 0, "node-a")), 1);
  const Job dead = find(old);
  EXPECT_EQ(dead.status, JobStatus::dead);
  EXPECT_EQ(dead.attempts, 0);
  EXPECT_FALSE(dead.started_at);
  ASSERT_EQ(dead.errors.size(), 1U);
  EXPECT_EQ(dead.errors[0].message, "too late");
  EXPECT_TRUE(dead.errors[0].started_at.empty()) << "no attempt failed";
  EXPECT_EQ(dead.errors[0].node, "node-a");
  EXPECT_EQ(find(young).status, JobStatus::pending);
  EXPECT_EQ(find(other).status, JobStatus::pending);
  EXPECT_EQ(must(db->store().drop_too_late(lane_of(old), before, 10, 0, "node-a")), 0);
}

TEST_P(StoreContract, DropTooLateSkipsJobsThatAreNotDueOrStillLeased) {
  set_lateness_limit();
  const JobId future = create(later("same")), leased = create(due("same"));
  claim_one(leased);
  EXPECT_EQ(must(db->store().drop_too_late(lane_of(future), db->now() + 2 * kLong, 10, 0, "node-a")), 0);
  EXPECT_EQ(find(future).status, JobStatus::pending);
  EXPECT_EQ(find(leased).status, JobStatus::running);
}

TEST_P(StoreContract, DropTooLateTakesExpiredLeasesAndTheirResultsAreStale) {
  set_lateness_limit();
  const JobId id = create(due());
  const ClaimedJob claimed = claim_and_expire(id);
  let_pass(3 * kShort);
  EXPECT_EQ(must(db->store().drop_too_late(lane_of(id), db->now(), 10, 0, "node-a")), 1);
  EXPECT_EQ(find(id).status, JobStatus::dead);
  EXPECT_EQ(finish({id, claimed.token, FinishRequest::Kind::done, {}, ""}), FinishReply::stale);
}

TEST_P(StoreContract, DropTooLateTakesTheOldestAndSkipsTheLocked) {
  set_lateness_limit();
  std::vector<JobId> jobs;
  for (int i = 0; i < 4; ++i) jobs.push_back(create(due("same")));
  let_pass(3 * kShort);
  db->lock(jobs[0]);
  EXPECT_EQ(must(db->store().drop_too_late(lane_of(jobs[0]), db->now(), 2, 0, "node-a")), 2);
  db->unlock();
  EXPECT_EQ(find(jobs[0]).status, JobStatus::pending);
  EXPECT_EQ(find(jobs[1]).status, JobStatus::dead);
  EXPECT_EQ(find(jobs[2]).status, JobStatus::dead);
  EXPECT_EQ(find(jobs[3]).status, JobStatus::pending);
  EXPECT_EQ(must(db->store().drop_too_late(lane_of(jobs[0]), db->now(), 2, 1, "node-a")), 1) << "passes the first";
  EXPECT_EQ(find(jobs[0]).status, JobStatus::pending);
  EXPECT_EQ(find(jobs[3]).status, JobStatus::dead);
}

TEST_P(StoreContract, ADroppedJobThatIsRetriedIsDueNowAndNotTooLateAnyMore) {
  set_lateness_limit();
  const JobId id = create(due());
  let_pass(3 * kShort);
  const WallTime before = db->now();
  ASSERT_EQ(must(db->store().drop_too_late(lane_of(id), before, 10, 0, "node-a")), 1);
  ASSERT_EQ(retry(id).kind, ChangeReply::Kind::changed);
  EXPECT_EQ(must(db->store().drop_too_late(lane_of(id), before, 10, 0, "node-a")), 0);
  EXPECT_LT(find(id).action_time, before) << "the deadline stays what it was";
  EXPECT_EQ(claim({id}).size(), 1U);
}

TEST_P(StoreContract, ClaimsOfABacklogEndAtTheirUpperBound) {
  const JobId old = create(due("same"));
  let_pass(kShort);
  const WallTime to = db->now();
  let_pass(kShort);
  const JobId young = create(due("same"));
  const auto won = must(db->store().claim_due(lane_of(old), {WallTime::min(), to}, 10, kLong, ticket())).won;
  ASSERT_EQ(won.size(), 1U);
  EXPECT_EQ(won[0].job.job_id, old);
  EXPECT_TRUE(must(db->store().fire_due(lane_of(old), {WallTime::min(), to}, 10, "node-a")).empty());
  EXPECT_EQ(must(db->store().fire_due(lane_of(old), {to}, 10, "node-a")).size(), 1U);
  EXPECT_EQ(find(young).status, JobStatus::done);
}

}  // namespace
}  // namespace tocsin

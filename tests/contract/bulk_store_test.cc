// BulkStore: start, find, list, request_stop, take_over, keep, finish; count, progress, run_batch.
#include "support/contract/bulk_contract.h"

namespace tocsin {
namespace {

TEST_P(BulkContract, ChangesEachMatchingJobOnce) {
  const auto jobs = create({later("a"), later("b"), later("c"), later("d"), later("e")});
  NewJob other = later("f");
  other.type_id = other_type_id;
  const JobId untouched = create(other);
  claim_one(create(due("g")));
  const Bulk bulk = start(all_of_type(BulkAction::cancel));
  EXPECT_EQ(bulk.matched, 5) << "pending ones only";
  EXPECT_EQ(run(bulk), 5);
  for (const JobId job : jobs) EXPECT_EQ(status(job), JobStatus::cancelled);
  EXPECT_EQ(status(untouched), JobStatus::pending);
  EXPECT_EQ(must(db->bulks().count(all_of_type(BulkAction::cancel))), 0);
  EXPECT_EQ(run(bulk), 5) << "a bulk that is done changes nothing more";
}

TEST_P(BulkContract, SkipsJobsCreatedAfterItsStart) {
  create(later("a"));
  const Bulk bulk = start(all_of_type(BulkAction::cancel));
  let_pass(kShort);
  const JobId young = create(later("b"));
  EXPECT_EQ(run(bulk), 1);
  EXPECT_EQ(status(young), JobStatus::pending);
}

TEST_P(BulkContract, EveryFieldOfTheFilterMustHold) {
  const auto jobs = create({later("a"), later("b")});
  BulkRequest request = all_of_type(BulkAction::cancel);
  request.filter.biz_id = "a";
  EXPECT_EQ(must(db->bulks().count(request)), 1);
  request.filter.from = find(jobs[0]).action_time + kShort;
  EXPECT_EQ(must(db->bulks().count(request)), 0) << "from is later than its deadline";
  request.filter.from = find(jobs[0]).action_time;
  request.filter.to = find(jobs[0]).action_time;
  EXPECT_EQ(must(db->bulks().count(request)), 0) << "to is not included";
  request.filter.to = find(jobs[0]).action_time + kShort;
  EXPECT_EQ(run(start(request)), 1);
  EXPECT_EQ(status(jobs[0]), JobStatus::cancelled);
  EXPECT_EQ(status(jobs[1]), JobStatus::pending);
}

TEST_P(BulkContract, RevivesTheDeadOfAReason) {
  const auto jobs = create({due("a"), due("b"), later("c"), due("d")});
  kill(jobs[0], "broken");
  kill(jobs[1], "gone");
  kill(jobs[3], "");
  BulkRequest request = all_of_type(BulkAction::retry);
  EXPECT_EQ(must(db->bulks().count(request)), 3);
  request.filter.reason = "broken";
  const Bulk bulk = start(request);
  EXPECT_EQ(bulk.matched, 1);
  EXPECT_EQ(run(bulk), 1);
  EXPECT_EQ(status(jobs[0]), JobStatus::pending);
  EXPECT_EQ(status(jobs[1]), JobStatus::dead);
  request.filter.reason = "";
  EXPECT_EQ(run(start(request)), 1) << "those that died without a reason";
  EXPECT_EQ(status(jobs[3]), JobStatus::pending);
  EXPECT_EQ(status(jobs[1]), JobStatus::dead);
}

TEST_P(BulkContract, MovesDeadlines) {
  const JobId job = create(later());
  BulkRequest request = all_of_type(BulkAction::reschedule);
  request.delay = 2 * kLong;
  const Bulk bulk = start(request);
  EXPECT_EQ(run(bulk), 1);
  EXPECT_EQ(find(job).action_time, bulk.started_at + 2 * kLong);
}

TEST_P(BulkContract, RunsNow) {
  const JobId job = create(later());
  EXPECT_EQ(run(start(all_of_type(BulkAction::run))), 1);
  EXPECT_LE(find(job).fire_at, db->now());
  EXPECT_EQ(status(job), JobStatus::pending);
}

TEST_P(BulkContract, VisitsLockedJobsAfterAllOthers) {
  const auto jobs = create({later("a"), later("b"), later("c")});
  const Bulk bulk = start(all_of_type(BulkAction::cancel));
  db->lock(jobs[0]);
  const BulkBatch batch = must(db->bulks().run_batch(bulk, 10));
  EXPECT_EQ(batch.changed, 2);
  EXPECT_FALSE(batch.is_done);
  db->unlock();
  EXPECT_EQ(run(bulk), 3);
  EXPECT_EQ(status(jobs[0]), JobStatus::cancelled);
}

TEST_P(BulkContract, LeavesOutJobsThatTheDatabaseRefuses) {
  const auto jobs = create({later("a"), later("b"), later("c"), later("d"), later("e")});
  const Bulk bulk = start(all_of_type(BulkAction::cancel));
  db->refuse(jobs[1]);
  const BulkBatch batch = must(db->bulks().run_batch(bulk, 2));
  EXPECT_FALSE(batch.is_done);
  std::optional<Error> refusal = batch.refusal;
  for (BulkBatch next = batch; !next.is_done;) {
    next = must(db->bulks().run_batch(bulk, 2));
    if (next.refusal) refusal = next.refusal;
  }
  EXPECT_TRUE(refusal) << "why it was left out";
  EXPECT_EQ(run(bulk), 4);
  EXPECT_EQ(status(jobs[1]), JobStatus::pending);
  EXPECT_EQ(status(jobs[4]), JobStatus::cancelled);
}

TEST_P(BulkContract, ADuplicateIdBlocksNoRetry) {
  const auto jobs = create({due("a"), due("b"), due("twice"), due("c")});
  for (const JobId job : jobs) kill(job);
  const JobId id = create(due("twice"));
  db->give_id(jobs[2], id);
  EXPECT_EQ(run(start(all_of_type(BulkAction::retry))), 4) << "that one with a fresh id";
  EXPECT_EQ(status(id), JobStatus::pending);
}

TEST_P(BulkContract, LeavesLockedJobsThatNoLongerMatch) {
  const auto jobs = create({later("a"), later("b"), later("c")});
  BulkRequest request = all_of_type(BulkAction::cancel);
  request.filter.to = find(jobs[2]).action_time + kShort;
  const Bulk bulk = start(request);
  EXPECT_EQ(bulk.matched, 3);
  db->lock(jobs[0]);
  EXPECT_EQ(must(db->bulks().run_batch(bulk, 10)).changed, 2);
  db->unlock();
  EXPECT_EQ(reschedule(jobs[0], in(24 * kLong)).kind, ChangeReply::Kind::changed);
  EXPECT_EQ(run(bulk), 2);
  EXPECT_EQ(status(jobs[0]), JobStatus::pending) << "its deadline is outside of the filter now";
}

TEST_P(BulkContract, RevivesNoLockedJobThatDiedAnew) {
  const auto jobs = create({due("a"), due("b")});
  for (const JobId job : jobs) kill(job);
  const Bulk bulk = start(all_of_type(BulkAction::retry));
  db->lock(jobs[0]);
  EXPECT_EQ(must(db->bulks().run_batch(bulk, 10)).changed, 1);
  db->unlock();
  EXPECT_EQ(retry(jobs[0]).kind, ChangeReply::Kind::changed);
  let_pass(kShort);
  kill(jobs[0]);
  EXPECT_EQ(run(bulk), 1);
  EXPECT_EQ(status(jobs[0]), JobStatus::dead) << "it died after the bulk began";
}

TEST_P(BulkContract, RevivesNoneThatDiedAfterItsStart) {
  const auto jobs = create({due("a"), due("b")});
  kill(jobs[0]);
  BulkRequest request = all_of_type(BulkAction::retry);
  const Bulk bulk = start_matched(request, 2);
  let_pass(kShort);
  kill(jobs[1]);
  EXPECT_EQ(run(bulk), 1);
  EXPECT_EQ(status(jobs[1]), JobStatus::dead);
}

TEST_P(BulkContract, AnotherNodeContinuesWhereTheFirstEnded) {
  create({later("a"), later("b"), later("c")});
  const Bulk bulk = start(all_of_type(BulkAction::cancel), 1, kShort);
  EXPECT_EQ(must(db->bulks().progress(bulk.bulk_id)).changed, 0);
  EXPECT_EQ(must(db->bulks().run_batch(bulk, 2)).changed, 2);
  let_pass(2 * kShort);
  const auto taken_over = must(db->bulks().take_over(2, kLong));
  ASSERT_TRUE(taken_over);
  EXPECT_EQ(taken_over->bulk_id, bulk.bulk_id);
  EXPECT_EQ(taken_over->request.filter.type_id, type_id);
  EXPECT_FALSE(must(db->bulks().take_over(3, kLong))) << "its lease has not ended";
  EXPECT_FALSE(must(db->bulks().keep(bulk.bulk_id, 1, 2, kLong))) << "the first has lost it";
  EXPECT_FALSE(must(db->bulks().finish(bulk, 1)));
  EXPECT_EQ(must(db->bulks().progress(bulk.bulk_id)).changed, 2);
  EXPECT_EQ(run(*taken_over), 3);
  EXPECT_EQ(must(db->bulks().keep(bulk.bulk_id, 2, 3, kLong))->changed, 3);
}

TEST_P(BulkContract, IsTakenOverByItsIdWhileNoNodeRunsIt) {
  create({later("a"), later("b"), later("c")});
  const Bulk other = start(all_of_type(BulkAction::cancel), 1, Duration(0));
  const Bulk bulk = start(all_of_type(BulkAction::cancel), 1, kShort);
  EXPECT_FALSE(must(db->bulks().take_over(4711, 2, kLong)));
  let_pass(2 * kShort);
  const auto taken_over = must(db->bulks().take_over(bulk.bulk_id, 2, kLong));
  ASSERT_TRUE(taken_over);
  EXPECT_EQ(taken_over->bulk_id, bulk.bulk_id);
  EXPECT_FALSE(must(db->bulks().take_over(bulk.bulk_id, 3, kLong))) << "the second node runs it";
  EXPECT_EQ(must(db->bulks().take_over(3, kLong))->bulk_id, other.bulk_id);
}

TEST_P(BulkContract, ChangesNothingAfterItIsClosed) {
  const auto jobs = create({later("a"), later("b"), later("c")});
  const Bulk bulk = start(all_of_type(BulkAction::cancel));
  EXPECT_EQ(must(db->bulks().run_batch(bulk, 2)).changed, 2);
  EXPECT_EQ(must(db->bulks().close(bulk.bulk_id)), 2);
  const BulkBatch later_batch = must(db->bulks().run_batch(bulk, 2));
  EXPECT_EQ(later_batch.changed, 2);
  EXPECT_TRUE(later_batch.is_done);
  EXPECT_EQ(status(jobs[2]), JobStatus::pending);
  const Bulk unstarted = start(all_of_type(BulkAction::cancel));
  EXPECT_EQ(must(db->bulks().close(unstarted.bulk_id)), 0);
  EXPECT_EQ(run(unstarted), 0);
}

TEST_P(BulkContract, EndsOnce) {
  Bulk bulk = start(all_of_type(BulkAction::cancel), 1, kShort);
  bulk.state = BulkState::failed;
  bulk.changed = 7;
  bulk.error = "why";
  EXPECT_TRUE(must(db->bulks().finish(bulk, 1)));
  EXPECT_FALSE(must(db->bulks().finish(bulk, 1)));
  EXPECT_FALSE(must(db->bulks().keep(bulk.bulk_id, 1, 8, kLong)));
  let_pass(2 * kShort);
  EXPECT_FALSE(must(db->bulks().take_over(2, kLong)));
  EXPECT_FALSE(must(db->bulks().request_stop(bulk.bulk_id))->is_stop_requested) << "it has ended";
  const auto ended = must(db->bulks().find(bulk.bulk_id));
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->state, BulkState::failed);
  EXPECT_EQ(ended->changed, 7);
  EXPECT_EQ(ended->error, "why");
  EXPECT_TRUE(ended->finished_at);
}

TEST_P(BulkContract, TheNodeThatRunsItReadsTheStopRequest) {
  const Bulk bulk = start(all_of_type(BulkAction::cancel));
  EXPECT_FALSE(bulk.is_stop_requested);
  EXPECT_TRUE(must(db->bulks().request_stop(bulk.bulk_id))->is_stop_requested);
  EXPECT_TRUE(must(db->bulks().keep(bulk.bulk_id, 1, 0, kLong))->is_stop_requested) << "who runs it learns of it";
  EXPECT_FALSE(must(db->bulks().request_stop(4711)));
  EXPECT_FALSE(must(db->bulks().find(4711)));
}

TEST_P(BulkContract, ListsTheNewestFirst) {
  const Bulk first = start(all_of_type(BulkAction::cancel)), second = start(all_of_type(BulkAction::run));
  const auto all = must(db->bulks().list(2));
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].bulk_id, second.bulk_id);
  EXPECT_EQ(all[0].request.action, BulkAction::run);
  EXPECT_EQ(all[1].bulk_id, first.bulk_id);
  EXPECT_EQ(must(db->bulks().list(1)).size(), 1U);
}

}  // namespace
}  // namespace tocsin

// ClientStore: change_together, find and list_keys, which serve many callers at once.
#include <algorithm>
#include <iterator>

#include "support/contract/store_fixture.h"

namespace tocsin {
namespace {

using JobIds = std::vector<JobId>;
using CancelKind = CancelReply::Kind;
using ChangeKind = ChangeReply::Kind;

TEST_P(StoreContract, ChangeTogetherAnswersEachVerb) {
  const JobIds jobs = create({later("a"), later("b"), later("b"), later("c"), later("d"), due("e")});
  claim_one(jobs[5]);
  const WallTime time = db->now() + std::chrono::hours(5);
  ChangeBatch batch;
  batch.cancels = {jobs[0], jobs[5], make_job_id(777'777, 1)};
  batch.key_cancels = {{"b", {}}, {"nobody", {}}, {"e", {}}};
  batch.changes = {{jobs[3], at(time)}, {jobs[4], {}}, {jobs[5], {}}, {make_job_id(777'777, 1), in(kLong)}};
  const Together reply = change_together(batch);

  ASSERT_EQ(reply.cancels.size(), 3u);
  EXPECT_EQ(reply.cancels[0].kind, CancelKind::cancelled);
  EXPECT_EQ(reply.cancels[0].job_id, jobs[0]);
  ASSERT_TRUE(reply.cancels[0].job);
  EXPECT_EQ(reply.cancels[0].job->status, JobStatus::cancelled);
  EXPECT_EQ(reply.cancels[1].kind, CancelKind::running);
  ASSERT_TRUE(reply.cancels[1].job);
  EXPECT_EQ(reply.cancels[2].kind, CancelKind::not_found);
  EXPECT_EQ(reply.cancels[2].job_id, make_job_id(777'777, 1));

  ASSERT_EQ(reply.key_cancels.size(), 3u);
  EXPECT_EQ(reply.key_cancels[0].cancelled, (JobIds{jobs[1], jobs[2]}));
  EXPECT_TRUE(reply.key_cancels[0].finished.empty());
  EXPECT_TRUE(reply.key_cancels[1].cancelled.empty());
  EXPECT_EQ(reply.key_cancels[2].running, JobIds{jobs[5]});

  ASSERT_EQ(reply.changes.size(), 4u);
  EXPECT_EQ(reply.changes[0].kind, ChangeKind::changed);
  EXPECT_EQ(reply.changes[0].job->action_time, time);
  EXPECT_EQ(reply.changes[0].job->fire_at, time);
  EXPECT_EQ(reply.changes[1].kind, ChangeKind::changed);
  EXPECT_LE(reply.changes[1].job->fire_at, db->now());
  EXPECT_GT(reply.changes[1].job->action_time, db->now()) << "run keeps the deadline";
  EXPECT_EQ(reply.changes[2].kind, ChangeKind::running);
  EXPECT_EQ(reply.changes[3].kind, ChangeKind::not_found);

  EXPECT_EQ(find(jobs[1]).status, JobStatus::cancelled);
  EXPECT_EQ(find(jobs[3]).action_time, time);
  EXPECT_EQ(claim({jobs[4]}).size(), 1u);
}

TEST_P(StoreContract, ChangeTogetherAcceptsEachKindAlone) {
  const JobIds jobs = create({later("a"), later("b"), later("c")});
  ChangeBatch cancels, keys, changes;
  cancels.cancels = {jobs[0]};
  keys.key_cancels = {{"b", type_id}};
  changes.changes = {{jobs[2], in(kLong * 2)}};
  EXPECT_EQ(change_together(cancels).cancels.front().kind, CancelKind::cancelled);
  EXPECT_EQ(change_together(keys).key_cancels.front().cancelled, JobIds{jobs[1]});
  EXPECT_EQ(change_together(changes).changes.front().kind, ChangeKind::changed);
  EXPECT_TRUE(change_together({}).cancels.empty());
}

TEST_P(StoreContract, ChangeTogetherReportsACancelToOneOfManyRequests) {
  const JobId id = create(later("a")), keyed = create(later("b")), both = create(later("c"));
  ChangeBatch batch;
  batch.cancels = {id, id, id, both};
  batch.key_cancels = {{"b", {}}, {"b", type_id}, {"b", {}}, {"c", {}}};
  const Together reply = change_together(batch);
  EXPECT_EQ(reply.cancels[0].kind, CancelKind::cancelled);
  EXPECT_EQ(reply.cancels[1].kind, CancelKind::finished);
  EXPECT_EQ(reply.cancels[2].kind, CancelKind::finished);
  ASSERT_TRUE(reply.cancels[2].job);
  EXPECT_EQ(reply.key_cancels[0].cancelled, JobIds{keyed});
  for (const std::size_t i : {1u, 2u}) {
    EXPECT_TRUE(reply.key_cancels[i].cancelled.empty());
    EXPECT_EQ(reply.key_cancels[i].finished, JobIds{keyed});
  }
  EXPECT_EQ(reply.cancels[3].kind, CancelKind::cancelled);
  EXPECT_TRUE(reply.key_cancels[3].cancelled.empty());
  EXPECT_EQ(reply.key_cancels[3].finished, JobIds{both});
  EXPECT_EQ(counts_of(type_id), (std::map<JobStatus, std::int64_t>{{JobStatus::cancelled, 3}}));
}

TEST_P(StoreContract, ChangeTogetherAppliesRepeatedChangesInOrder) {
  const JobId id = create(later());
  const WallTime first = db->now() + std::chrono::hours(5), second = db->now() + std::chrono::hours(6);
  ChangeBatch batch;
  batch.changes = {{id, at(first)}, {id, at(second)}};
  const Together reply = change_together(batch);
  EXPECT_EQ(reply.changes[0].job->action_time, first);
  EXPECT_EQ(reply.changes[1].job->action_time, second);
  EXPECT_EQ(find(id).action_time, second);
}

TEST_P(StoreContract, ChangeTogetherDelaysOnlyTheRequestOfALockedRow) {
  const JobIds jobs = create({later("a"), later("b"), later("c"), later("d"), later("e")});
  db->lock(jobs[0]);
  for (const bool is_retry : {false, true}) {
    ChangeBatch batch;
    batch.is_retry = is_retry;
    const JobId other = create(later("f"));
    batch.cancels = {jobs[0], other};
    batch.key_cancels = {{"a", {}}, {is_retry ? "e" : "b", {}}};
    batch.changes = {{jobs[0], {}}, {jobs[2], in(kLong * 2)}};
    const Together reply = change_together(batch);
    EXPECT_EQ(reply.cancels[0].kind, CancelKind::locked);
    EXPECT_EQ(reply.cancels[1].kind, CancelKind::cancelled);
    EXPECT_TRUE(reply.key_cancels[0].cancelled.empty());
    EXPECT_EQ(reply.key_cancels[0].locked, JobIds{jobs[0]});
    EXPECT_EQ(reply.key_cancels[1].cancelled.size(), 1u);
    EXPECT_EQ(reply.changes[0].kind, ChangeKind::locked);
    EXPECT_EQ(reply.changes[1].kind, ChangeKind::changed);
  }
  db->unlock();
  EXPECT_EQ(find(jobs[0]).status, JobStatus::pending);
  EXPECT_EQ(cancel(jobs[0]).kind, CancelKind::cancelled);
}

TEST_P(StoreContract, ChangeTogetherSkipsAKeyWithTooManyJobs) {
  const JobIds some = create(std::vector<NewJob>(ClientStore::kMostOfOneKeyTogether, later("some")));
  const JobIds many = create(std::vector<NewJob>(ClientStore::kMostOfOneKeyTogether + 1, later("many")));
  ChangeBatch batch;
  batch.key_cancels = {{"many", {}}, {"some", {}}};
  const Together reply = change_together(batch);
  EXPECT_TRUE(reply.key_cancels[0].is_too_many);
  EXPECT_TRUE(reply.key_cancels[0].cancelled.empty());
  EXPECT_EQ(find(many.front()).status, JobStatus::pending);
  EXPECT_FALSE(reply.key_cancels[1].is_too_many);
  EXPECT_EQ(reply.key_cancels[1].cancelled, some);
}

TEST_P(StoreContract, ChangeTogetherNamesTheNewestEndedJobsOfAKey) {
  const JobIds past = create(std::vector<NewJob>(ClientStore::kMostNamed + 1, later("past")));
  must(db->client_store().cancel_all("past", std::nullopt));
  const JobId last = create(later("past"));
  ChangeBatch batch;
  batch.key_cancels = {{"past", {}}};
  const KeyCancelReply reply = change_together(batch).key_cancels.front();
  EXPECT_EQ(reply.cancelled, JobIds{last});
  EXPECT_TRUE(reply.has_more_finished);
  ASSERT_LE(reply.finished.size(), ClientStore::kMostNamed);
  ASSERT_GE(reply.finished.size(), ClientStore::kMostNamed - 1);
  EXPECT_EQ(reply.finished.front(), past.back());
  EXPECT_TRUE(std::ranges::is_sorted(reply.finished, std::greater()));
}

// The jobs of another type do not hide what there is of a type: the answer says that it is not all.
TEST_P(StoreContract, ChangeTogetherSeparatesEndedJobsOfAKeyByType) {
  NewJob foreign = later("key");
  foreign.type_id = other_type_id;
  ChangeBatch of_type;
  of_type.key_cancels = {{"key", type_id}};
  const JobId old = create(later("key"));
  cancel(old);
  create(std::vector<NewJob>(ClientStore::kMostNamed, foreign));
  must(db->client_store().cancel_all("key", other_type_id));
  const KeyCancelReply ended = change_together(of_type).key_cancels.front();
  EXPECT_TRUE(ended.cancelled.empty());
  EXPECT_TRUE(ended.finished.empty());
  EXPECT_TRUE(ended.has_more_finished) << old << " is behind those of the other type";

  create(std::vector<NewJob>(ClientStore::kMostOfOneKeyTogether, foreign));
  const JobId last = create(later("key"));
  const KeyCancelReply live = change_together(of_type).key_cancels.front();
  EXPECT_TRUE(live.is_too_many);
  EXPECT_TRUE(live.cancelled.empty() && live.running.empty() && live.locked.empty());
  EXPECT_EQ(find(last).status, JobStatus::pending);
  EXPECT_EQ(must(db->client_store().cancel_all("key", type_id)).jobs.front().kind, CancelKind::cancelled);
  EXPECT_EQ(find(last).status, JobStatus::cancelled);
}

TEST_P(StoreContract, ChangeTogetherNamesEndedJobsOfAKeyUpToABound) {
  const JobIds past = create(std::vector<NewJob>(ClientStore::kMostNamed, later("past")));
  must(db->client_store().cancel_all("past", std::nullopt));
  ChangeBatch batch;
  batch.key_cancels = {{"past", type_id}};
  const KeyCancelReply reply = change_together(batch).key_cancels.front();
  EXPECT_EQ(reply.finished.size(), ClientStore::kMostNamed);
  EXPECT_FALSE(reply.has_more_finished);
}

// find and list_keys -----------------------------------------------------------------------------------------------

JobIds ids(const KeyList& list) {
  JobIds all;
  for (const Job& job : list.jobs) all.push_back(job.job_id);
  return all;
}

TEST_P(StoreContract, FindAnswersManyIdsInTheirOrder) {
  const JobIds jobs = create({later("a"), later("b"), due("c")});
  cancel(jobs[1]);
  claim_one(jobs[2]);
  const JobIds asked = {make_job_id(777'777, 0), jobs[2], jobs[1], jobs[0], jobs[0]};
  const auto found = must(db->client_store().find(asked));
  ASSERT_EQ(found.size(), asked.size());
  EXPECT_FALSE(found[0]);
  const std::vector<JobStatus> expected = {JobStatus::running, JobStatus::cancelled, JobStatus::pending,
                                           JobStatus::pending};
  for (std::size_t i = 1; i < asked.size(); ++i) {
    ASSERT_TRUE(found[i]) << i;
    EXPECT_EQ(found[i]->job_id, asked[i]);
    EXPECT_EQ(found[i]->status, expected[i - 1]);
  }
  EXPECT_TRUE(must(db->client_store().find({})).empty());
}

TEST_P(StoreContract, ListKeysGivesEachKeyItsNewestJobs) {
  NewJob foreign = later("a");
  foreign.type_id = other_type_id;
  const JobIds jobs = create({later("a"), later("b"), later("a"), foreign, later("a")});
  cancel(jobs[2]);
  const std::vector<KeyQuery> queries = {{"a", {}, {}, 10},      {"b", {}, {}, 10}, {"nobody", {}, {}, 10},
                                         {"a", type_id, {}, 10}, {"a", {}, {}, 2},  {"a", {}, jobs[3], 10}};
  const auto lists = must(db->client_store().list_keys(queries));
  ASSERT_EQ(lists.size(), queries.size());
  EXPECT_EQ(ids(lists[0]), (JobIds{jobs[4], jobs[3], jobs[2], jobs[0]}));
  EXPECT_EQ(ids(lists[1]), JobIds{jobs[1]});
  EXPECT_TRUE(lists[2].jobs.empty());
  EXPECT_EQ(ids(lists[3]), (JobIds{jobs[4], jobs[2], jobs[0]}));
  EXPECT_EQ(ids(lists[4]), (JobIds{jobs[4], jobs[3]}));
  EXPECT_EQ(ids(lists[5]), (JobIds{jobs[2], jobs[0]}));
  EXPECT_EQ(lists[0].jobs[2].status, JobStatus::cancelled);
  for (const KeyList& list : lists) EXPECT_FALSE(list.unread_below);
}

TEST_P(StoreContract, ListKeysOfATypeReadsABoundedPartOfTheKeyAndSaysWhereItEnds) {
  NewJob foreign = later("key");
  foreign.type_id = other_type_id;
  const JobId old = create(later("key"));
  const JobIds between = create(std::vector<NewJob>(ClientStore::kMostReadOfKey, foreign));
  must(db->client_store().cancel_all("key", other_type_id));
  const JobIds newest = create({later("key"), later("key")});
  // Of the newest 1,000 two have the type, and 998 the other one.
  const std::vector<KeyQuery> queries = {
      {"key", type_id, {}, 10}, {"key", type_id, {}, 2}, {"key", type_id, between[1], 10}, {"key", {}, {}, 10}};
  const auto lists = must(db->client_store().list_keys(queries));
  EXPECT_EQ(ids(lists[0]), (JobIds{newest[1], newest[0]}));
  EXPECT_EQ(lists[0].unread_below, between[2]);
  EXPECT_EQ(ids(lists[1]), (JobIds{newest[1], newest[0]}));
  EXPECT_FALSE(lists[1].unread_below) << "the limit ended it";
  EXPECT_EQ(ids(lists[2]), JobIds{old});
  EXPECT_FALSE(lists[2].unread_below);
  EXPECT_EQ(lists[3].jobs.size(), 10u);
  EXPECT_FALSE(lists[3].unread_below);
}

TEST_P(StoreContract, ListKeysEndsALongPageOfLargeAttributesEarly) {
  NewJob large = later("large"), foreign = later("large");
  large.attribute_json = R"({"text":")" + std::string(60'000, 'x') + R"("})";
  foreign.type_id = other_type_id;
  std::vector<NewJob> all(30, large);
  all.insert(all.begin() + 14, foreign);  // counts for nothing in a list of the other type
  const JobIds jobs = create(all);
  const JobIds few = create({later("few"), later("few")});
  const auto lists = must(db->client_store().list_keys(std::vector<KeyQuery>{
      {"large", {}, {}, 100}, {"large", type_id, {}, 100}, {"few", {}, {}, 100}, {"large", {}, {}, 5}}));
  const std::vector<std::size_t> expected = {19, 18, 2, 5};
  for (std::size_t i = 0; i < lists.size(); ++i) EXPECT_EQ(lists[i].jobs.size(), expected[i]) << i;
  EXPECT_EQ(lists[0].unread_below, lists[0].jobs.back().job_id);
  EXPECT_EQ(lists[1].unread_below, lists[1].jobs.back().job_id);
  EXPECT_FALSE(lists[2].unread_below);
  EXPECT_FALSE(lists[3].unread_below) << "the limit ended it";
  const auto rest =
      must(db->client_store().list_keys(std::vector<KeyQuery>{{"large", {}, lists[0].unread_below, 100}}));
  ASSERT_EQ(rest[0].jobs.size(), 12u);
  EXPECT_EQ(rest[0].jobs.front().job_id, jobs[11]);
  EXPECT_FALSE(rest[0].unread_below);
}

}  // namespace
}  // namespace tocsin

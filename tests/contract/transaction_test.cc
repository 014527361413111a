// Transactions of businesses: several statements with time between them, and an end.
#include "support/contract/store_fixture.h"

namespace tocsin {
namespace {

using CreateKind = CreateReply::Kind;

NewJob plain(NewJob job) {
  job.attribute_json.clear();
  job.has_own_max_attempts = false;
  return job;
}

TEST_P(StoreContract, JobsOfATransactionAreVisibleAfterItsCommit) {
  auto business = db->begin_business();
  const JobId first = business->create(plain(due("a"))), second = business->create(plain(later("b")));
  EXPECT_NE(first, second);
  EXPECT_FALSE(must(db->reports().find(first)));
  EXPECT_TRUE(claim({first}).empty());
  EXPECT_EQ(cancel(second).kind, CancelReply::Kind::not_found);
  business->commit();
  created_ += 2;
  EXPECT_EQ(find(second).status, JobStatus::pending);
  EXPECT_EQ(claim({first}).size(), 1u);
}

TEST_P(StoreContract, ATransactionThatIsRolledBackFreesTheKeyThatItHeld) {
  const NewJob job = plain(keyed("k", in(kLong)));
  auto business = db->begin_business();
  business->create(job);
  const auto held = db->client_store().create({&job, 1}, CreateMode::all_or_nothing);
  ASSERT_FALSE(held);
  EXPECT_EQ(held.error().code, ErrorCode::conflict) << held.error().message;
  const std::vector<NewJob> both{job, plain(due("free"))};
  const auto replies = must(db->client_store().create(both, CreateMode::each_by_itself));
  EXPECT_EQ(replies[0].kind, CreateKind::locked) << "and holds up no other";
  EXPECT_EQ(replies[1].kind, CreateKind::created);
  ++created_;
  business.reset();
  EXPECT_EQ(create_reply(job).kind, CreateKind::created);
}

// Each try to find the free ones leaves rows behind, and holds up a thread that others need.
TEST_P(StoreContract, CreateButHeldSearchesFreeKeysForABoundedTime) {
  std::vector<NewJob> jobs = {plain(keyed("free", in(kLong)))};
  auto business = db->begin_business();
  for (int i = 0; i < ClientStore::kMostHeldTries; ++i) {
    jobs.push_back(plain(keyed("held-" + std::to_string(i), in(kLong))));
    business->create(jobs.back());
  }
  jobs.push_back(plain(keyed("behind", in(kLong))));
  const auto few = must(db->client_store().create(std::span(jobs).last(3), CreateMode::each_but_held));
  EXPECT_EQ(few[0].kind, CreateKind::locked);
  EXPECT_EQ(few[1].kind, CreateKind::locked);
  EXPECT_EQ(few[2].kind, CreateKind::created);
  jobs.back() = plain(keyed("behind many", in(kLong)));
  const auto replies = must(db->client_store().create(jobs, CreateMode::each_but_held));
  created_ += 2;
  EXPECT_EQ(replies.front().kind, CreateKind::created);
  for (std::size_t i = 1; i < jobs.size(); ++i) EXPECT_EQ(replies[i].kind, CreateKind::locked) << i;
}

TEST_P(StoreContract, ATransactionThatIsCommittedKeepsItsKey) {
  const NewJob job = plain(keyed("k", at(db->now() + kLong)));
  auto business = db->begin_business();
  const JobId id = business->create(job);
  EXPECT_EQ(business->create(job), id) << "the transaction sees its own";
  business->commit();
  ++created_;
  const CreateReply again = create_reply(job);
  EXPECT_EQ(again.kind, CreateKind::existing);
  EXPECT_EQ(again.job_id, id);
}

TEST_P(StoreContract, ACancelIsUndoneWithItsTransaction) {
  const JobId job = create(due());
  auto business = db->begin_business();
  EXPECT_EQ(business->cancel(job), "cancelled");
  EXPECT_TRUE(claim({job}).empty()) << "its end decides";
  EXPECT_EQ(cancel(job).kind, CancelReply::Kind::locked);
  business.reset();
  EXPECT_EQ(claim({job}).size(), 1u);
  business = db->begin_business();
  EXPECT_EQ(business->cancel(job), "running");
}

TEST_P(StoreContract, AScanKnowsThatATransactionIsOpen) {
  const auto watermark = [&] {
    const ScanReply reply = must(db->store().scan({}, {}, WriterMark::set));
    return std::pair(reply.oldest_writer, reply.next_writer);
  };
  const auto before = watermark();
  auto business = db->begin_business();
  const JobId job = business->create(plain(due()));
  const auto open = watermark();
  EXPECT_LE(before.second, open.second);
  EXPECT_LT(open.first, open.second) << "rows of the open one may still come, although none has ended since it began";
  let_pass(kShort);
  EXPECT_EQ(watermark().first, open.first) << "as long as it is open";
  business->commit();
  ++created_;
  EXPECT_EQ(find(job).status, JobStatus::pending);
  EXPECT_GT(watermark().first, open.first);
}

// So the watermark may pass a time that the transaction has read already: create_job reads its clock after its id.
TEST_P(StoreContract, AScanKnowsATransactionFromItsFirstWriteOn) {
  const auto scan = [&] { return must(db->store().scan({}, {}, WriterMark::set)); };
  const ScanReply before = scan();
  auto business = db->begin_business();
  const WallTime read = business->read_clock();
  const ScanReply reading = scan();
  EXPECT_GE(reading.oldest_writer, before.next_writer) << "the transaction has no id";
  EXPECT_GE(reading.began, read);
  NewJob past = plain(due());
  past.when = at(read);
  const JobId job = business->create(past);
  const ScanReply writing = scan();
  EXPECT_LT(writing.oldest_writer, writing.next_writer) << "it has one";
  business->commit();
  ++created_;
  EXPECT_EQ(find(job).action_time, read);
  EXPECT_GE(find(job).fire_at, reading.began) << "no scan that did not know of it has passed its row";
}

TEST_P(StoreContract, AScanWithoutATransactionIdReturnsNoWatermark) {
  EXPECT_EQ(must(db->store().scan({})).next_writer, std::numeric_limits<std::int64_t>::max());
}

BizType plain_type(const std::string& name) {
  BizType type;
  type.name = name;
  type.handler_kind = "noop";
  type.handler_json = R"({"kind":"noop"})";
  return type;
}

NewJob of_type(TypeId type, NewJob job) {
  job.type_id = type;
  return job;
}

TEST_P(StoreContract, AnOpenCreateOfItsJobKeepsATypeFromRemoval) {
  const TypeId type = must(db->types().put(plain_type("t"))).type.type_id;
  auto business = db->begin_business();
  const JobId job = business->create(plain(of_type(type, later())));
  EXPECT_EQ(must(db->types().remove("t")), TypeStore::RemoveReply::jobs_may_come);
  EXPECT_TRUE(must(db->types().find("t"))) << "it stays";
  create(of_type(type, later("b")));
  business->commit();
  ++created_;
  EXPECT_EQ(must(db->types().remove("t")), TypeStore::RemoveReply::has_live_jobs);
  EXPECT_EQ(find(job).status, JobStatus::pending);
}

TEST_P(StoreContract, ATypeIsRemovedAfterItsCreatorHasRolledBack) {
  const TypeId type = must(db->types().put(plain_type("t"))).type.type_id;
  auto business = db->begin_business();
  business->create(plain(of_type(type, later())));
  EXPECT_EQ(must(db->types().remove("t")), TypeStore::RemoveReply::jobs_may_come);
  business.reset();
  EXPECT_EQ(must(db->types().remove("t")), TypeStore::RemoveReply::removed);
}

// A node may not know yet that a type was removed.
TEST_P(StoreContract, JobsOfARemovedTypeAreRefusedItemByItem) {
  const TypeId type = must(db->types().put(plain_type("t"))).type.type_id;
  must(db->types().remove("t"));
  NewJob with_key = keyed("k", in(kLong)), free_key = with_key;
  with_key.type_id = type;
  const std::vector<NewJob> jobs{later("a"), of_type(type, later("b")), with_key, free_key};
  const auto replies = must(db->client_store().create(jobs, CreateMode::each_by_itself));
  created_ += 2;
  EXPECT_EQ(replies[0].kind, CreateKind::created);
  EXPECT_EQ(replies[1].kind, CreateKind::type_removed);
  EXPECT_TRUE(replies[1].is_refused());
  EXPECT_EQ(replies[2].kind, CreateKind::type_removed);
  EXPECT_EQ(replies[3].kind, CreateKind::created);
  EXPECT_EQ(create_reply(of_type(type, later())).kind, CreateKind::type_removed);
}

TEST_P(StoreContract, ARepeatFindsTheEndedJobOfARemovedType) {
  NewJob job = keyed("k", at(db->now() + kLong));
  job.type_id = must(db->types().put(plain_type("t"))).type.type_id;
  const JobId id = create(job);
  cancel(id);
  must(db->types().remove("t"));
  const CreateReply again = create_reply(job);
  EXPECT_EQ(again.kind, CreateKind::existing);
  EXPECT_EQ(again.job_id, id);
}

TEST_P(StoreContract, OneJobOfARemovedTypeUndoesAnAllOrNothingCall) {
  const TypeId type = must(db->types().put(plain_type("t"))).type.type_id;
  must(db->types().remove("t"));
  for (const bool has_keys : {false, true}) {
    const std::vector<NewJob> jobs{has_keys ? keyed("k", in(kLong)) : later("a"), of_type(type, later("b"))};
    const auto replies = must(db->client_store().create(jobs, CreateMode::all_or_nothing));
    EXPECT_EQ(replies[1].kind, CreateKind::type_removed);
  }
  EXPECT_TRUE(must(db->reports().list({})).jobs.empty()) << "nothing was created";
}

}  // namespace
}  // namespace tocsin

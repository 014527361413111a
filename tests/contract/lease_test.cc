// ClientStore: leases.
#include "support/contract/store_fixture.h"
#include "support/lease_kinds.h"

namespace tocsin {
namespace {

using FinishKind = FinishRequest::Kind;

LeaseReply finish(StoreFixture& db, const FinishRequest& request) {
  const auto replies = must(db.client_store().finish_leased({&request, 1}, "node-b"));
  if (replies.size() != 1) throw std::runtime_error("one reply per request");
  return replies[0].kind;
}

std::optional<TypeId> extend(StoreFixture& db, const Lease& lease, Duration ttr) {
  const Extension extension{lease, ttr};
  const auto replies = must(db.client_store().extend({&extension, 1}));
  if (replies.size() != 1) throw std::runtime_error("one reply per lease");
  const LeaseResult& reply = replies[0];
  return reply.kind == LeaseReply::applied ? std::optional(reply.type_id) : std::nullopt;
}

TEST_P(StoreContract, LeasedReturnsTheHolderAndTheAttempts) {
  NewJob wanted = due();
  wanted.max_attempts = 3;
  const JobId id = create(wanted), other = create(due("order-2"));
  const ClaimedJob first = claim_one(id);
  EXPECT_EQ(this->finish({id, first.token, FinishKind::retry, Duration(0), "one"}), FinishReply::applied);
  const ClaimedJob second = claim_one(id);
  const std::vector<Lease> leases{{id, second.token}, {id, first.token}, {other, 7}, {id + 1024 * 1024, 7}};
  const auto reply = must(db->client_store().leased(leases));
  ASSERT_EQ(reply.size(), 4u);
  ASSERT_TRUE(reply[0]);
  EXPECT_EQ(reply[0]->type_id, type_id);
  EXPECT_EQ(reply[0]->attempts, 2);
  EXPECT_EQ(reply[0]->max_attempts, 3);
  for (std::size_t i = 1; i < 4; ++i) EXPECT_FALSE(reply[i]) << i;
  EXPECT_EQ(find(id).status, JobStatus::running) << "nothing is changed";
}

TEST_P(StoreContract, LeasesFinishEachWithItsOutcomeInOrder) {
  const std::vector<JobId> ids = create({due("a"), due("b"), due("c"), due("d"), later("e")});
  std::vector<FinishRequest> requests;
  const std::vector<FinishKind> kinds{FinishKind::done, FinishKind::retry, FinishKind::dead, FinishKind::release_claim};
  for (std::size_t i = 0; i < kinds.size(); ++i)
    requests.push_back({ids[i], claim_one(ids[i]).token, kinds[i], kLong, "why"});
  requests.push_back({ids[4], 7, FinishKind::done, {}, ""});  // never claimed
  const auto replies = must(db->client_store().finish_leased(requests, "node-b"));
  const std::vector<LeaseReply> wanted{LeaseReply::applied, LeaseReply::applied, LeaseReply::applied,
                                       LeaseReply::applied, LeaseReply::stale};
  EXPECT_EQ(kinds_of(replies), wanted);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(replies[i].type_id, type_id) << i;
  EXPECT_EQ(find(ids[0]).status, JobStatus::done);
  EXPECT_EQ(find(ids[1]).status, JobStatus::pending);
  EXPECT_EQ(find(ids[1]).errors.at(0).message, "why");
  EXPECT_EQ(find(ids[1]).errors.at(0).node, "node-b");
  EXPECT_EQ(find(ids[2]).status, JobStatus::dead);
  EXPECT_EQ(find(ids[3]).attempts, 0);
  EXPECT_EQ(find(ids[4]).status, JobStatus::pending);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(tocsin::finish(*db, requests[i]), LeaseReply::stale) << "once";
}

TEST_P(StoreContract, LeasesOfAnotherAttemptAreStale) {
  const JobId id = create(due());
  const ClaimedJob first = claim_and_expire(id);
  const ClaimedJob second = claim_one(id);
  for (const FinishKind kind : {FinishKind::done, FinishKind::dead, FinishKind::retry})
    EXPECT_EQ(tocsin::finish(*db, {id, first.token, kind, {}, ""}), LeaseReply::stale);
  EXPECT_FALSE(extend(*db, {id, first.token}, kLong));
  const Job job = find(id);
  EXPECT_EQ(job.status, JobStatus::running);
  EXPECT_EQ(job.fire_at, second.job.fire_at);
  EXPECT_EQ(tocsin::finish(*db, {id, second.token, FinishKind::done, {}, ""}), LeaseReply::applied);
}

TEST_P(StoreContract, LeasesThatHaveEndedAreStaleEvenIfTheJobIsUnclaimed) {
  const JobId id = create(due());
  const ClaimedJob claimed = claim_and_expire(id);
  EXPECT_EQ(tocsin::finish(*db, {id, claimed.token, FinishKind::done, {}, ""}), LeaseReply::stale);
  EXPECT_FALSE(extend(*db, {id, claimed.token}, kLong));
  const Lease lease{id, claimed.token};
  EXPECT_FALSE(must(db->client_store().leased({&lease, 1}))[0]);
  EXPECT_EQ(find(id).status, JobStatus::running);
  EXPECT_EQ(claim_one(id).job.attempts, 2);
}

TEST_P(StoreContract, ExtendMovesTheEndOfTheLease) {
  const JobId id = create(due());
  const Duration ttr = std::chrono::milliseconds(300);
  const ClaimedJob claimed = claim_one(id, ttr);
  const WallTime before = db->now();
  EXPECT_EQ(extend(*db, {id, claimed.token}, kLong), type_id);
  const Job job = find(id);
  EXPECT_GE(job.fire_at, before + kLong);
  EXPECT_LE(job.fire_at, db->now() + kLong);
  EXPECT_EQ(job.attempts, 1);
  EXPECT_EQ(job.status, JobStatus::running);
  EXPECT_EQ(job.last_started_at, claimed.job.last_started_at) << "the attempt has not begun anew";
  db->wait_until(claimed.job.fire_at);
  EXPECT_TRUE(claim({id}).empty()) << "still leased";
  EXPECT_EQ(extend(*db, {id, claimed.token}, kShort), type_id) << "shorter is an extension, too";
  db->wait_until(find(id).fire_at);
  EXPECT_EQ(claim_one(id).job.attempts, 2);
}

TEST_P(StoreContract, LeasesOfLockedRowsDelayNoOthers) {
  const JobId locked = create(due("a")), open = create(due("b"));
  const std::vector<FinishRequest> requests{{locked, claim_one(locked).token, FinishKind::done, {}, ""},
                                            {open, claim_one(open).token, FinishKind::done, {}, ""}};
  db->lock(locked);
  EXPECT_EQ(kinds_of(must(db->client_store().finish_leased(requests, "node-b"))),
            (std::vector{LeaseReply::busy, LeaseReply::applied}));
  EXPECT_EQ(find(open).status, JobStatus::done);
  EXPECT_EQ(find(locked).status, JobStatus::running);
  EXPECT_EQ(kinds_of(must(db->client_store().finish_leased({requests.data(), 1}, "node-b"))),
            std::vector{LeaseReply::busy});
  db->unlock();
  EXPECT_EQ(tocsin::finish(*db, requests[0]), LeaseReply::applied);
}

TEST_P(StoreContract, ExtensionsOfLockedRowsFailNoOthers) {
  const JobId locked = create(due("a")), open = create(due("b")), over = create(due("c"));
  const ClaimedJob held = claim_one(locked), other = claim_one(open);
  const std::vector<Extension> extensions{
      {{locked, held.token}, 2 * kLong}, {{open, other.token}, 2 * kLong}, {{over, 7}, 2 * kLong}};
  db->lock(locked);
  const auto replies = must(db->client_store().extend(extensions));
  ASSERT_EQ(replies.size(), 3U);
  EXPECT_EQ(replies[0].kind, LeaseReply::busy);
  EXPECT_EQ(replies[1].kind, LeaseReply::applied);
  EXPECT_EQ(replies[1].type_id, type_id);
  EXPECT_EQ(replies[2].kind, LeaseReply::stale);
  EXPECT_EQ(find(locked).fire_at, held.job.fire_at);
  EXPECT_GT(find(open).fire_at, other.job.fire_at);
  EXPECT_EQ(must(db->client_store().extend({extensions.data(), 1})).at(0).kind, LeaseReply::busy);
  db->unlock();
  EXPECT_EQ(tocsin::extend(*db, extensions[0].lease, kLong), type_id);
}

TEST_P(StoreContract, ALeaseGivenTwiceIsWrittenOnce) {
  const JobId id = create(due("a"));
  const ClaimedJob held = claim_one(id);
  const FinishRequest done{id, held.token, FinishKind::done, {}, ""},
      failed{id, held.token, FinishKind::dead, {}, "no"};
  const std::vector<Extension> twice{{{id, held.token}, kLong}, {{id, held.token}, kLong}};
  EXPECT_EQ(must(db->client_store().extend(twice)).size(), 2U);
  const auto replies = kinds_of(must(db->client_store().finish_leased(std::vector{done, failed}, "node-b")));
  EXPECT_EQ(std::ranges::count(replies, LeaseReply::applied), 1);
  EXPECT_EQ(std::ranges::count(replies, LeaseReply::stale), 1);
  EXPECT_EQ(find(id).status, replies[0] == LeaseReply::applied ? JobStatus::done : JobStatus::dead);
}

TEST_P(StoreContract, LeasesLeftReturnsTheRemainingTimes) {
  const JobId held = create(due("a")), done = create(due("b")), over = create(due("c")), open = create(due("d"));
  const ClaimedJob first = claim_one(held, kLong), second = claim_one(done, kLong);
  EXPECT_EQ(tocsin::finish(*db, {done, second.token, FinishKind::done, {}, ""}), LeaseReply::applied);
  const ClaimedJob third = claim_and_expire(over);
  const std::vector<Lease> leases{
      {held, first.token}, {held, first.token + 1}, {done, second.token}, {over, third.token}, {open, 7}};
  const auto left = must(db->store().leases_left(leases));
  ASSERT_EQ(left.size(), 5U);
  ASSERT_TRUE(left[0]);
  EXPECT_GT(*left[0], Duration(0));
  EXPECT_LE(*left[0], kLong);
  for (std::size_t i = 1; i < 5; ++i) EXPECT_FALSE(left[i]) << i;
  EXPECT_EQ(extend(*db, {held, first.token}, 3 * kLong), type_id);
  EXPECT_GT(*must(db->store().leases_left(leases))[0], kLong);
}

}  // namespace
}  // namespace tocsin

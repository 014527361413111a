// Batches of requests of which a part is written, or may be: what each caller is told, and that nothing is written
// twice.
#include <gtest/gtest.h>

#include "service/request_batches.h"
#include "support/lease_kinds.h"
#include "unit/service/request_jobs.h"

namespace tocsin {
namespace {

// Writes happen, and their answers are lost if the test says so.
struct LostAnswers final : FaultPoint {
  Effect before(const FakeCall&) override { return is_down ? Effect::unavailable : Effect::happens; }
  void working(const FakeCall&) override {}
  bool after(const FakeCall& call) override { return !call.is_write || !loses_answers; }
  void keep(std::function<void()>) override {}
  bool loses_answers = false, is_down = false;
};

class RequestsInDoubt : public ::testing::Test, protected RequestJobs {
 protected:
  // Extends both leases while the second one's row is locked: the first is written, and the rest is returned.
  std::vector<LeaseItem> extend_beside_a_locked_one(const Lease& a, const Lease& b,
                                                    Result<std::vector<LeaseResult>>& reply) {
    database.lock(b.job_id);
    std::vector<LeaseItem> items;
    items.push_back({ExtensionsAsked{{{a, std::chrono::hours(1)}, {b, std::chrono::hours(1)}}, to(reply)}});
    auto locked = write_leases(client_store, "n", std::move(items));
    EXPECT_EQ(locked.size(), 1U);
    return locked;
  }

  LostAnswers faults;
  FakeClientStore client_store{database, nullptr, &faults};
  const Error unasked_{ErrorCode::invalid, "not answered", ""};
};

TEST_F(RequestsInDoubt, CreatesAreNotSentAgain) {
  faults.loses_answers = true;
  Result<CreateReply> a = unasked_, b = unasked_;
  std::vector<CreateItem> items;
  items.push_back({{job("a"), to(a)}});
  items.push_back({{job("b"), to(b)}});
  EXPECT_TRUE(write_creates(client_store, std::move(items)).empty());
  ASSERT_FALSE(a || b);
  EXPECT_EQ(a.error().code, ErrorCode::in_doubt);
  EXPECT_EQ(b.error().code, ErrorCode::in_doubt);
  EXPECT_EQ(database.list({}).size(), 2U) << "each job is there once";
}

// Sent again they would find the job cancelled, and their callers would be told that it is over.
TEST_F(RequestsInDoubt, CancelsAreNotSentAgain) {
  const JobId a = create("a"), b = create("b");
  faults.loses_answers = true;
  Result<CancelReply> first = unasked_, second = unasked_;
  std::vector<ChangeItem> items;
  items.push_back({CancelAsked{a, to(first)}});
  items.push_back({CancelAsked{b, to(second)}});
  EXPECT_TRUE(write_changes(client_store, std::move(items), LockedRowAttempt::first).empty());
  ASSERT_FALSE(first || second);
  EXPECT_EQ(first.error().code, ErrorCode::in_doubt);
  EXPECT_EQ(second.error().code, ErrorCode::in_doubt);
}

TEST_F(RequestsInDoubt, ACancelByKeyNamesWhatItCancelledBesideALockedJob) {
  const JobId a = create("shared"), b = create("shared");
  database.lock(b);
  Result<KeyCancelReply> reply = unasked_;
  std::vector<ChangeItem> items;
  items.push_back({KeyCancelAsked{{"shared", {}}, to(reply)}});
  EXPECT_TRUE(write_changes(client_store, std::move(items), LockedRowAttempt::first).empty());
  ASSERT_TRUE(reply) << "a second try would find the first job finished";
  EXPECT_EQ(reply->cancelled, std::vector<JobId>{a});
  EXPECT_EQ(reply->locked, std::vector<JobId>{b});
  EXPECT_TRUE(reply->finished.empty());
}

TEST_F(RequestsInDoubt, ALockedAckThatEndsInDoubtIsToldSo) {
  const Lease a = lease(create("a")), b = lease(create("b"));
  database.lock(b.job_id);
  Result<std::vector<LeaseResult>> reply = unasked_;
  const auto done = [](const Lease& lease) { return FinishRequest{lease.job_id, lease.token, {}, {}, {}}; };
  std::vector<LeaseItem> items;
  items.push_back({OutcomesAsked{{done(a), done(b)}, to(reply)}});
  auto locked = write_leases(client_store, "n", std::move(items));
  ASSERT_EQ(locked.size(), 1U);
  database.unlock(b.job_id);
  faults.loses_answers = true;
  EXPECT_TRUE(write_leases(client_store, "n", std::move(locked)).empty());
  ASSERT_TRUE(reply);
  EXPECT_EQ(kinds_of(*reply), (std::vector{LeaseReply::applied, LeaseReply::in_doubt})) << "it may be written";
}

TEST_F(RequestsInDoubt, ALockedAckThatIsRefusedLaterIsToldSo) {
  const Lease a = lease(create("a")), b = lease(create("b"));
  Result<std::vector<LeaseResult>> reply = unasked_;
  auto locked = extend_beside_a_locked_one(a, b, reply);
  database.unlock(b.job_id);
  database.refuse(b.job_id, FakeDatabase::unwritable_row());
  EXPECT_TRUE(write_leases(client_store, "n", std::move(locked)).empty());
  ASSERT_TRUE(reply);
  EXPECT_EQ(kinds_of(*reply), (std::vector{LeaseReply::applied, LeaseReply::refused}));
}

TEST_F(RequestsInDoubt, ALockedAckThatEndsInAnOutageIsBusy) {
  const Lease a = lease(create("a")), b = lease(create("b"));
  Result<std::vector<LeaseResult>> reply = unasked_;
  auto locked = extend_beside_a_locked_one(a, b, reply);
  faults.is_down = true;
  EXPECT_TRUE(write_leases(client_store, "n", std::move(locked)).empty());
  ASSERT_TRUE(reply);
  EXPECT_EQ(kinds_of(*reply), (std::vector{LeaseReply::applied, LeaseReply::busy})) << "it is not written";
}

}  // namespace
}  // namespace tocsin

// Batches of requests of which the database refuses a row: only its own request fails, however many callers share the
// batch.
#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "ports/row_refusal.h"
#include "service/request_batches.h"
#include "support/lease_kinds.h"
#include "support/no_faults.h"
#include "unit/service/request_jobs.h"

namespace tocsin {
namespace {

struct CountedCalls final : NoFaults {
  Effect before(const FakeCall&) override { return ++n, Effect::happens; }
  int n = 0;
};

// The parameter: how the database refuses.
class RefusedRequests : public testing::TestWithParam<Error>, protected RequestJobs {
 protected:
  using CreateReplies = std::map<int, Result<CreateReply>>;

  RefusedRequests() { database.refuse_new("bad", GetParam()); }
  JobId create_refused(const std::string& biz_id) {
    const JobId id = create(biz_id);
    database.refuse(id, GetParam());
    return id;
  }
  // Writes `n` creates, which the database refuses where `is_bad`.
  CreateReplies create_all(int n, const std::function<bool(int)>& is_bad) {
    CreateReplies replies;
    std::vector<CreateItem> items;
    for (int i = 0; i < n; ++i)
      items.push_back({{job(is_bad(i) ? "bad" : "good"),
                        [&replies, i](Result<CreateReply> r) { replies.emplace(i, std::move(r)); }}});
    EXPECT_TRUE(write_creates(client_store, std::move(items)).empty());
    EXPECT_EQ(std::ssize(replies), n);
    return replies;
  }
  static void expect_refused(const auto& reply) {
    ASSERT_FALSE(reply);
    EXPECT_EQ(reply.error().code, GetParam().code);
    EXPECT_EQ(reply.error().field, GetParam().field);
    EXPECT_EQ(reply.error().message, GetParam().message);
  }

  CountedCalls calls;
  FakeClientStore client_store{database, nullptr, &calls};
  const Error unasked_{ErrorCode::conflict, "not answered", ""};
};

TEST_P(RefusedRequests, ACreateFailsNoOther) {
  const auto is_bad = [](int i) { return i == 5 || i == 20; };
  for (const auto& [i, reply] : create_all(32, is_bad)) {
    if (is_bad(i)) {
      expect_refused(reply);
      continue;
    }
    ASSERT_TRUE(reply) << i;
    EXPECT_EQ(reply->kind, CreateReply::Kind::created);
  }
  EXPECT_LE(calls.n, 1 + 2 * 2 * 5) << "halves, not one by one";
}

TEST_P(RefusedRequests, ManyCreatesBetweenOthersFailNoneOfThem) {
  const auto is_bad = [](int i) { return i % 2 == 0; };
  for (const auto& [i, reply] : create_all(64, is_bad)) EXPECT_EQ(reply.ok(), !is_bad(i)) << i;
}

TEST_P(RefusedRequests, ACancelFailsNoOther) {
  const JobId a = create("a"), bad = create_refused("b"), c = create("c");
  Result<CancelReply> first = unasked_, refused = unasked_, last = unasked_;
  Result<KeyCancelReply> key = unasked_, refused_key = unasked_;
  std::vector<ChangeItem> items;
  items.push_back({CancelAsked{a, to(first)}});
  items.push_back({CancelAsked{bad, to(refused)}});
  items.push_back({KeyCancelAsked{{"b", {}}, to(refused_key)}});
  items.push_back({KeyCancelAsked{{"c", {}}, to(key)}});
  items.push_back({CancelAsked{make_job_id(4242, 1), to(last)}});
  EXPECT_TRUE(write_changes(client_store, std::move(items), LockedRowAttempt::first).empty());
  ASSERT_TRUE(first && key && last);
  EXPECT_EQ(first->kind, CancelReply::Kind::cancelled);
  EXPECT_EQ(key->cancelled, std::vector<JobId>{c});
  EXPECT_EQ(last->kind, CancelReply::Kind::not_found);
  expect_refused(refused);
  expect_refused(refused_key);
}

TEST_P(RefusedRequests, AChangeFailsNoOtherAndIsNotTriedAgain) {
  const JobId a = create("a"), bad = create_refused("b"), c = create("c"), locked_job = create("d");
  database.lock(locked_job);
  Result<ChangeReply> first = unasked_, refused = unasked_, refused_run = unasked_, last = unasked_, held = unasked_;
  const When later{{}, std::chrono::hours(9)};
  std::vector<ChangeItem> items;
  items.push_back({ChangeAsked{{a, later}, to(first)}});
  items.push_back({ChangeAsked{{bad, later}, to(refused)}});
  items.push_back({ChangeAsked{{bad, {}}, to(refused_run)}});
  items.push_back({ChangeAsked{{c, {}}, to(last)}});
  items.push_back({ChangeAsked{{locked_job, {}}, to(held)}});
  EXPECT_EQ(write_changes(client_store, std::move(items), LockedRowAttempt::first).size(), 1U) << "the locked one";
  ASSERT_TRUE(first && last);
  EXPECT_EQ(first->kind, ChangeReply::Kind::changed);
  EXPECT_EQ(last->kind, ChangeReply::Kind::changed);
  expect_refused(refused);
  expect_refused(refused_run);
}

TEST_P(RefusedRequests, ALeaseFailsNoOtherCall) {
  const Lease a = lease(create("a")), c = lease(create("c")), d = lease(create("d")), e = lease(create("e"));
  const JobId bad_id = create("b");
  const Lease bad = lease(bad_id);
  database.refuse(bad_id, GetParam());
  using Reply = Result<std::vector<LeaseResult>>;
  Reply ack = unasked_, refused_ack = unasked_, nack = unasked_, refused_nack = unasked_, both = unasked_;
  const auto done = [](const Lease& lease) { return FinishRequest{lease.job_id, lease.token, {}, {}, {}}; };
  const auto again = [](const Lease& lease) {
    return FinishRequest{lease.job_id, lease.token, FinishRequest::Kind::retry, std::chrono::hours(1), "no"};
  };
  std::vector<LeaseItem> items;
  items.push_back({OutcomesAsked{{done(a)}, to(ack)}});
  items.push_back({OutcomesAsked{{done(bad)}, to(refused_ack)}});
  items.push_back({OutcomesAsked{{again(c)}, to(nack)}});
  items.push_back({OutcomesAsked{{again(bad)}, to(refused_nack)}});
  items.push_back({OutcomesAsked{{done(bad), done(d)}, to(both)}});
  EXPECT_TRUE(write_leases(client_store, "n", std::move(items)).empty());
  ASSERT_TRUE(ack && nack && both);
  EXPECT_EQ(kinds_of(*ack), std::vector{LeaseReply::applied});
  EXPECT_EQ(kinds_of(*nack), std::vector{LeaseReply::applied});
  EXPECT_EQ(kinds_of(*both), (std::vector{LeaseReply::refused, LeaseReply::applied}));

  Reply extended = unasked_, refused_extension = unasked_;
  const Duration hour = std::chrono::hours(1);
  items.clear();
  items.push_back({ExtensionsAsked{{{e, hour}, {bad, hour}}, to(extended)}});
  items.push_back({ExtensionsAsked{{{bad, hour}}, to(refused_extension)}});
  EXPECT_TRUE(write_leases(client_store, "n", std::move(items)).empty());
  ASSERT_TRUE(extended);
  EXPECT_EQ(kinds_of(*extended), (std::vector{LeaseReply::applied, LeaseReply::refused}));
  for (const Reply* reply : {&refused_ack, &refused_nack, &refused_extension}) {
    ASSERT_FALSE(*reply);
    EXPECT_EQ(reply->error().field, kRefused);
    EXPECT_EQ(reply->error().message, GetParam().message);
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, RefusedRequests,
                         testing::Values(FakeDatabase::refused_row(), FakeDatabase::unwritable_row()),
                         [](const auto& way) { return way.param.field == kRefused ? "ForNow" : "OfValues"; });

class UnwritableCreates : public RefusedRequests {};

TEST_P(UnwritableCreates, EndTheBatchAfterTheLogarithmOfTheirNumber) {
  for (const auto& [i, reply] : create_all(500, [](int) { return true; })) expect_refused(reply);
  EXPECT_LE(calls.n, 1 + 9 + kMostRefusedInARow);
}

INSTANTIATE_TEST_SUITE_P(Ways, UnwritableCreates, testing::Values(FakeDatabase::unwritable_row()));

class InvalidCreates : public RefusedRequests {};

TEST_P(InvalidCreates, AreNoSignThatTheOthersWouldBeRefused) {
  const auto is_bad = [](int i) { return i < 3 * kMostRefusedInARow; };
  for (const auto& [i, reply] : create_all(64, is_bad)) EXPECT_EQ(reply.ok(), !is_bad(i)) << i;
}

INSTANTIATE_TEST_SUITE_P(Ways, InvalidCreates, testing::Values(FakeDatabase::refused_row()));

}  // namespace
}  // namespace tocsin

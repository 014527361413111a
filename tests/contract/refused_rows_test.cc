// ClientStore and FunctionStore: a row that the database refuses to write costs only the job, request or lease that it
// belongs to, whether the database does not take its values or cannot write it now.
#include "ports/row_refusal.h"
#include "support/contract/store_fixture.h"
#include "support/lease_kinds.h"

namespace tocsin {
namespace {

using JobIds = std::vector<JobId>;
using CancelKind = CancelReply::Kind;
using ChangeKind = ChangeReply::Kind;
using CreateKind = CreateReply::Kind;
using FinishKind = FinishRequest::Kind;

constexpr Refusal kRefusals[] = {Refusal::of_values, Refusal::for_now};

void expect_refused(const auto& reply, Refusal how) {
  ASSERT_FALSE(reply);
  EXPECT_TRUE(is_refused_row(reply.error())) << reply.error().message;
  EXPECT_EQ(reply.error().code, how == Refusal::of_values ? ErrorCode::invalid : ErrorCode::unavailable);
}

TEST_P(StoreContract, ARefusedRequestCostsNoOtherOfItsBatch) {
  for (const Refusal how : kRefusals) {
    for (const bool is_retry : {false, true}) {
      const JobIds jobs = create({later("a"), later("bad a"), later("b"), later("c"), later("bad c"), later("d"),
                                  later("bad d"), later("e"), later("bad e")});
      for (const std::size_t bad : {1U, 4U, 6U, 8U}) db->refuse(jobs[bad], how);
      ChangeBatch batch;
      batch.is_retry = is_retry;
      batch.cancels = {jobs[0], jobs[1], jobs[2], jobs[1], make_job_id(777'777, 1)};
      batch.key_cancels = {{"c", {}}, {"bad c", type_id}, {"nobody", {}}};
      batch.changes = {{jobs[6], in(kLong)}, {jobs[5], in(2 * kLong)}, {jobs[8], {}}, {jobs[7], {}}};
      ChangeBatchReply reply = must(db->client_store().change_together(batch));
      EXPECT_EQ(must(reply.cancels[0]).kind, CancelKind::cancelled);
      expect_refused(reply.cancels[1], how);
      EXPECT_EQ(must(reply.cancels[2]).kind, CancelKind::cancelled);
      expect_refused(reply.cancels[3], how);
      EXPECT_EQ(must(reply.cancels[4]).kind, CancelKind::not_found);
      EXPECT_EQ(must(reply.key_cancels[0]).cancelled, JobIds{jobs[3]});
      expect_refused(reply.key_cancels[1], how);
      EXPECT_TRUE(must(reply.key_cancels[2]).cancelled.empty());
      expect_refused(reply.changes[0], how);
      EXPECT_EQ(must(reply.changes[1]).kind, ChangeKind::changed);
      expect_refused(reply.changes[2], how);
      EXPECT_EQ(must(reply.changes[3]).kind, ChangeKind::changed);
      for (const std::size_t bad : {1U, 4U, 6U, 8U}) EXPECT_EQ(find(jobs[bad]).status, JobStatus::pending) << bad;
      db->refuse_nothing();
      EXPECT_EQ(change_together({is_retry, {jobs[1]}, {}, {}}).cancels[0].kind, CancelKind::cancelled);
      for (const std::size_t i : {4U, 5U, 6U, 7U, 8U}) cancel(jobs[i]);
    }
  }
}

TEST_P(StoreContract, ALockedRequestBesideARefusedOneIsLocked) {
  for (const Refusal how : kRefusals) {
    const JobIds jobs = create({later("a"), later("bad"), later("b"), later("c"), later("d")});
    db->lock(jobs[2]);
    db->refuse(jobs[1], how);
    ChangeBatch batch;
    batch.cancels = {jobs[0], jobs[2]};
    batch.key_cancels = {{"c", {}}, {"b", {}}};
    batch.changes = {{jobs[1], {}}, {jobs[4], {}}, {jobs[2], {}}};
    ChangeBatchReply reply = must(db->client_store().change_together(batch));
    EXPECT_EQ(must(reply.cancels[0]).kind, CancelKind::cancelled);
    EXPECT_EQ(must(reply.cancels[1]).kind, CancelKind::locked);
    EXPECT_EQ(must(reply.key_cancels[0]).cancelled, JobIds{jobs[3]});
    EXPECT_EQ(must(reply.key_cancels[1]).locked, JobIds{jobs[2]});
    expect_refused(reply.changes[0], how);
    EXPECT_EQ(must(reply.changes[1]).kind, ChangeKind::changed);
    EXPECT_EQ(must(reply.changes[2]).kind, ChangeKind::locked);
    db->unlock();
    db->refuse_nothing();
    for (const std::size_t i : {1U, 2U, 4U}) cancel(jobs[i]);
  }
}

TEST_P(StoreContract, ARefusedRequestOfALaterRoundCostsNoOther) {
  const JobIds jobs = create({later("a"), later("bad"), later("b")});
  db->refuse(jobs[1], Refusal::for_now);
  ChangeBatch batch;
  batch.changes = {{jobs[0], in(kLong)}, {jobs[1], in(kLong)}, {jobs[0], in(2 * kLong)}, {jobs[1], {}}, {jobs[2], {}}};
  ChangeBatchReply reply = must(db->client_store().change_together(batch));
  for (const std::size_t i : {0U, 2U, 4U}) EXPECT_EQ(must(reply.changes[i]).kind, ChangeKind::changed) << i;
  for (const std::size_t i : {1U, 3U}) expect_refused(reply.changes[i], Refusal::for_now);
}

TEST_P(StoreContract, WhenEveryRequestIsRefusedNoneIsWritten) {
  const JobIds jobs = create(std::vector<NewJob>(40, later("a")));
  for (const JobId job : jobs) db->refuse(job, Refusal::for_now);
  ChangeBatch batch;
  batch.cancels = jobs;
  for (const auto& reply : must(db->client_store().change_together(batch)).cancels)
    expect_refused(reply, Refusal::for_now);
  expect_refused(db->client_store().cancel(jobs, LockWait::some_seconds), Refusal::for_now);
  EXPECT_EQ(counts_of(type_id), (std::map<JobStatus, std::int64_t>{{JobStatus::pending, 40}}));
  db->refuse_nothing();
  for (const CancelReply& reply : change_together(batch).cancels) EXPECT_EQ(reply.kind, CancelKind::cancelled);
}

TEST_P(StoreContract, ARefusedJobOfACancelCostsNoOther) {
  for (const Refusal how : kRefusals) {
    const JobIds jobs = create({later("a"), later("a"), later("a"), later("a")});
    db->refuse(jobs[1], how);
    db->lock(jobs[3]);
    const auto kinds = [](const std::vector<CancelReply>& replies) {
      std::vector<CancelKind> all;
      for (const CancelReply& reply : replies) all.push_back(reply.kind);
      return all;
    };
    EXPECT_EQ(kinds(must(db->client_store().cancel(jobs, LockWait::none))),
              (std::vector{CancelKind::cancelled, CancelKind::refused, CancelKind::cancelled, CancelKind::locked}));
    const JobIds bad_and_locked{jobs[1], jobs[3]};
    EXPECT_EQ(kinds(must(db->client_store().cancel(bad_and_locked, LockWait::none))),
              (std::vector{CancelKind::refused, CancelKind::locked}));
    db->unlock();
    expect_refused(db->client_store().cancel({&jobs[1], 1}, LockWait::none), how);
    const CancelAllReply all = must(db->client_store().cancel_all("a", {}));
    EXPECT_EQ(std::ranges::count(all.jobs, CancelKind::refused, &CancelReply::kind), 1);
    EXPECT_EQ(find(jobs[3]).status, JobStatus::cancelled);
    db->refuse_nothing();
    EXPECT_EQ(cancel(jobs[1]).kind, CancelKind::cancelled);
  }
}

TEST_P(StoreContract, ARefusedLeaseCostsNoOther) {
  for (const Refusal how : kRefusals) {
    const JobIds jobs = create({due("a"), due("bad"), due("b"), due("c"), due("locked")});
    std::vector<FinishRequest> outcomes;
    std::vector<Extension> extensions;
    for (const JobId job : jobs) {
      const ClaimToken token = claim_one(job).token;
      outcomes.push_back({job, token, FinishKind::done, {}, ""});
      extensions.push_back({{job, token}, 2 * kLong});
    }
    outcomes[1].kind = outcomes[2].kind = FinishKind::retry;
    outcomes[1].delay = outcomes[2].delay = kLong;
    outcomes[3].token = ++extensions[3].lease.token;
    db->refuse(jobs[1], how);
    db->lock(jobs[4]);
    const std::vector expected{LeaseReply::applied, LeaseReply::refused, LeaseReply::applied, LeaseReply::stale,
                               LeaseReply::busy};
    const auto extended = must(db->client_store().extend(extensions));
    EXPECT_EQ(kinds_of(extended), expected);
    EXPECT_NE(extended[1].why, "");
    EXPECT_EQ(kinds_of(must(db->client_store().finish_leased(outcomes, "n"))), expected);
    EXPECT_EQ(kinds_of(must(db->client_store().finish_leased({&outcomes[1], 1}, "n"))),
              std::vector{LeaseReply::refused});
    EXPECT_EQ(find(jobs[1]).status, JobStatus::running);
    db->unlock();
    db->refuse_nothing();
    EXPECT_EQ(kinds_of(must(db->client_store().finish_leased({&outcomes[1], 1}, "n"))),
              std::vector{LeaseReply::applied});
  }
}

TEST_P(StoreContract, ARefusedNewJobCostsNoOtherOfAPartialBatch) {
  for (const Refusal how : kRefusals) {
    for (const bool has_keys : {false, true}) {
      const std::string name = std::string(has_keys ? "keyed" : "plain") + (how == Refusal::for_now ? "1" : "2");
      std::vector<NewJob> jobs = {later(name), later("bad"), later(name)};
      for (std::size_t i = 0; has_keys && i < jobs.size(); ++i) jobs[i].idempotency_key = name + std::to_string(i);
      db->refuse_new("bad", how);
      for (const CreateMode mode : {CreateMode::all_or_nothing, CreateMode::all_if_free, CreateMode::each_if_free})
        expect_refused(db->client_store().create(jobs, mode), how);
      EXPECT_EQ(counts_of(type_id).size(), static_cast<std::size_t>(created_ > 0)) << "nothing was created";
      const CreateKind expected = how == Refusal::of_values ? CreateKind::invalid : CreateKind::unwritable;
      const auto replies =
          must(db->client_store().create(jobs, has_keys ? CreateMode::each_but_held : CreateMode::each_by_itself));
      created_ += 2;
      EXPECT_EQ(replies[0].kind, CreateKind::created);
      EXPECT_EQ(replies[1].kind, expected);
      EXPECT_NE(replies[1].why, "");
      EXPECT_EQ(replies[2].kind, CreateKind::created);
      const auto alone = must(db->client_store().create({&jobs[1], 1}, CreateMode::each_but_held));
      EXPECT_EQ(alone[0].kind, expected);
      db->refuse_nothing();
      EXPECT_EQ(create_reply(jobs[1]).kind, CreateKind::created);
    }
  }
}

TEST_P(StoreContract, ARefusedDeadJobCostsNoOtherRetry) {
  for (const Refusal how : kRefusals) {
    const JobIds jobs = create({due("a"), due("bad"), due("b"), due("c")});
    for (const JobId job : jobs) kill(job);
    db->refuse(jobs[1], how);
    const JobIds three(jobs.begin(), jobs.begin() + 3);
    auto replies = must(db->client_store().retry_each(three));
    EXPECT_EQ(must(replies[0]).kind, ChangeKind::changed);
    expect_refused(replies[1], how);
    EXPECT_EQ(must(replies[2]).kind, ChangeKind::changed);
    ClientStore::RetryMany all;
    all.type_id = type_id;
    EXPECT_EQ(must(db->client_store().retry_many(all)), 1);
    expect_refused(db->client_store().retry_many(all), how);
    db->refuse_nothing();
    EXPECT_EQ(must(db->client_store().retry_many(all)), 1);
    for (const JobId job : jobs) cancel(job);
  }
}

// All calls of a run are one transaction.
TEST_P(StoreContract, ARefusedEndUndoesTheRunOfAFunction) {
  FunctionStore& functions = db->functions();
  for (const Refusal how : kRefusals) {
    const JobIds jobs = create({due("a"), due("bad")});
    std::vector<FunctionCall> calls;
    for (const JobId job : jobs) calls.push_back({job, claim_one(job).token});
    const FunctionStore::Judge judge = [&](std::size_t n, const auto&) -> Result<FinishRequest> {
      return FinishRequest{calls[n].job_id, calls[n].token, FinishKind::done, {}, ""};
    };
    db->refuse(jobs[1], how);
    expect_refused(functions.run({"shop", "done"}, calls, kLong, judge, "n"), how);
    EXPECT_EQ(db->noted("a"), how == Refusal::of_values ? 0 : 1);
    EXPECT_EQ(find(jobs[0]).status, JobStatus::running);
    db->refuse_nothing();
    EXPECT_TRUE(must(functions.run({"shop", "done"}, calls, kLong, judge, "n")).written[1]);
  }
}

// Their calls are all or nothing: the engine splits them.
TEST_P(StoreContract, ARefusedRowFailsItsCallOfTheEngineInBothWays) {
  for (const Refusal how : kRefusals) {
    const JobIds jobs = create({due("a"), due("bad")});
    std::vector<FinishRequest> outcomes;
    for (const JobId job : jobs) outcomes.push_back({job, claim_one(job).token, FinishKind::retry, kLong, "no"});
    db->refuse(jobs[1], how);
    expect_refused(db->store().finish(outcomes, "n"), how);
    EXPECT_EQ(find(jobs[0]).status, JobStatus::running);
    db->refuse_nothing();
    EXPECT_EQ(must(db->store().finish(outcomes, "n"))[1], FinishReply::applied);
    for (const JobId job : jobs) cancel(job);
  }
}

}  // namespace
}  // namespace tocsin

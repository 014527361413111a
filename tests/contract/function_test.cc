// The contract of FunctionStore: a function's work and the end of its job are one.
#include "support/contract/store_fixture.h"

namespace tocsin {
namespace {

// What SqlKind makes of an answer, as far as these functions answer.
Result<FinishRequest> judge(const FunctionCall& call, const std::optional<std::string>& answer) {
  FinishRequest request{call.job_id, call.token, FinishRequest::Kind::done, Duration(0), ""};
  if (!answer) return request;
  if (answer->find("retry_ms") != std::string::npos) {
    request.kind = FinishRequest::Kind::retry;
    request.delay = std::chrono::hours(1);
  } else if (answer->find("dead") != std::string::npos) {
    request.kind = FinishRequest::Kind::dead;
    request.message = "gone";
  } else {
    return Error{ErrorCode::invalid, "means nothing: " + *answer, ""};
  }
  return request;
}

FunctionReply run(StoreFixture& db, const std::string& function, const std::vector<FunctionCall>& calls) {
  return must(db.functions().run(
      {"shop", function}, calls, std::chrono::minutes(1),
      [&](std::size_t n, const std::optional<std::string>& answer) { return judge(calls[n], answer); }, "node-a"));
}

FunctionCall call_of(const ClaimedJob& claimed) { return {claimed.job.job_id, claimed.token}; }

TEST_P(StoreContract, FunctionAnswersAreWritten) {
  const ClaimedJob done = claim_one(create(due("a"))), later = claim_one(create(due("b"))),
                   dead = claim_one(create(due("c")));
  EXPECT_TRUE(run(*db, "done", {call_of(done)}).written[0]);
  EXPECT_TRUE(run(*db, "later", {call_of(later)}).written[0]);
  EXPECT_TRUE(run(*db, "dead", {call_of(dead)}).written[0]);
  EXPECT_EQ(find(done.job.job_id).status, JobStatus::done);
  EXPECT_EQ(find(later.job.job_id).status, JobStatus::pending);
  EXPECT_EQ(find(later.job.job_id).attempts, 1);
  EXPECT_EQ(find(dead.job.job_id).status, JobStatus::dead);
  EXPECT_EQ(find(dead.job.job_id).errors.back().message, "gone");
  for (const char* biz_id : {"a", "b", "c"}) EXPECT_EQ(db->noted(biz_id), 1) << biz_id;
}

TEST_P(StoreContract, FunctionsAreCalledForManyJobsInOneStatement) {
  std::vector<FunctionCall> calls;
  for (int i = 0; i < 20; ++i) calls.push_back(call_of(claim_one(create(due("order-" + std::to_string(i))))));
  const FunctionReply reply = run(*db, "done", calls);
  ASSERT_EQ(reply.written.size(), 20U);
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(reply.written[static_cast<std::size_t>(i)]);
    EXPECT_EQ(reply.written[static_cast<std::size_t>(i)]->job_id, calls[static_cast<std::size_t>(i)].job_id);
    EXPECT_EQ(db->noted("order-" + std::to_string(i)), 1);
  }
}

TEST_P(StoreContract, FunctionFailureUndoesEverything) {
  const ClaimedJob good = claim_one(create(due("good"))), bad = claim_one(create(due("bad")));
  const FunctionReply reply = run(*db, "picky", {call_of(good), call_of(bad)});
  EXPECT_NE(reply.failure.find("not bad"), std::string::npos) << reply.failure;
  EXPECT_EQ(db->noted("good"), 0);
  EXPECT_EQ(db->noted("bad"), 0);
  EXPECT_EQ(find(good.job.job_id).status, JobStatus::running);
  EXPECT_EQ(run(*db, "picky", {call_of(good)}).failure, "") << "the claim still stands";
  EXPECT_EQ(db->noted("good"), 1);
}

// States that the server gives to its own errors, too: a deadlock, a lost connection, too many of them, its end, a
// standby. A function may meet them at another server.
TEST_P(StoreContract, AFunctionFailsByAnyStateThatItRaises) {
  for (const char* state : {"40001", "40003", "40P01", "08006", "53300", "57P01", "25006"}) {
    const ClaimedJob good = claim_one(create(due("good"))), bad = claim_one(create(due(state)));
    const FunctionReply reply = run(*db, "raises", {call_of(good), call_of(bad)});
    EXPECT_NE(reply.failure.find("raised"), std::string::npos) << state << ": " << reply.failure;
    EXPECT_EQ(find(good.job.job_id).status, JobStatus::running) << state;
    EXPECT_EQ(run(*db, "raises", {call_of(good)}).failure, "") << state << ": the claim still stands";
  }
}

TEST_P(StoreContract, AFunctionThatMakesItsTransactionReadOnlyFails) {
  const ClaimedJob job = claim_one(create(due("a")));
  EXPECT_NE(run(*db, "read_only", {call_of(job)}).failure.find("the end of the job"), std::string::npos);
  EXPECT_EQ(db->noted("a"), 0);
  EXPECT_EQ(find(job.job.job_id).status, JobStatus::running);
}

TEST_P(StoreContract, AFunctionAnswerOfNoMeaningUndoesEverything) {
  const ClaimedJob job = claim_one(create(due("a")));
  EXPECT_NE(run(*db, "odd", {call_of(job)}).failure.find("means nothing: 7"), std::string::npos);
  EXPECT_EQ(db->noted("a"), 0);
  EXPECT_EQ(find(job.job.job_id).status, JobStatus::running);
}

TEST_P(StoreContract, AMissingFunctionFails) {
  EXPECT_NE(run(*db, "missing", {call_of(claim_one(create(due("a"))))}).failure.find("shop.missing"),
            std::string::npos);
}

// As after a commit whose answer was lost.
TEST_P(StoreContract, FunctionCallRepeatedDoesNothing) {
  const ClaimedJob done = claim_one(create(due("a"))), later = claim_one(create(due("b")));
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(run(*db, "done", {call_of(done)}).written[0].has_value(), i == 0);
    EXPECT_EQ(run(*db, "later", {call_of(later)}).written[0].has_value(), i == 0);
  }
  EXPECT_EQ(db->noted("a"), 1);
  EXPECT_EQ(db->noted("b"), 1);
}

TEST_P(StoreContract, FunctionIsNotCalledForAStaleClaim) {
  const JobId job = create(due("a"));
  const ClaimedJob old = claim_and_expire(job);
  const ClaimedJob fresh = claim_one(job);
  EXPECT_FALSE(run(*db, "done", {call_of(old)}).written[0]);
  EXPECT_EQ(db->noted("a"), 0);
  EXPECT_TRUE(run(*db, "done", {call_of(fresh)}).written[0]);
  EXPECT_EQ(db->noted("a"), 1);
}

TEST_P(StoreContract, FunctionCallsSkipLockedRows) {
  const ClaimedJob locked = claim_one(create(due("a"))), free = claim_one(create(due("b")));
  static_cast<void>(db->functions());
  db->lock(locked.job.job_id);
  const FunctionReply reply = run(*db, "done", {call_of(locked), call_of(free)});
  EXPECT_FALSE(reply.written[0]);
  EXPECT_TRUE(reply.written[1]);
  db->unlock();
  EXPECT_EQ(db->noted("a"), 0);
  EXPECT_TRUE(run(*db, "done", {call_of(locked)}).written[0]);
}

TEST_P(StoreContract, FunctionCheckRefusesAMissingFunction) {
  EXPECT_TRUE(db->functions().check({"shop", "done"}).ok());
  const Status missing = db->functions().check({"shop", "missing"});
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code, ErrorCode::invalid);
  EXPECT_EQ(missing.error().field, "handler.function");
}

}  // namespace
}  // namespace tocsin

#include "delivery/sql_handler.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <latch>
#include <stdexcept>

#include "support/fake_functions.h"
#include "support/manual_clock.h"

namespace tocsin {
namespace {

using namespace std::chrono_literals;

TEST(SqlAnswer, MeansDoneLaterOrDead) {
  EXPECT_EQ(outcome_of(std::nullopt)->kind, Outcome::Kind::done);
  EXPECT_EQ(outcome_of(R"({"retry_ms": 1500})")->kind, Outcome::Kind::retry);
  EXPECT_EQ(outcome_of(R"({"retry_ms": 1500})")->retry_after, Duration(1500ms));
  EXPECT_EQ(outcome_of(R"({"retry_ms": 0})")->retry_after, Duration(0));
  EXPECT_EQ(outcome_of(R"({"dead": "no such order"})")->kind, Outcome::Kind::dead);
  EXPECT_EQ(outcome_of(R"({"dead": "no such order"})")->message, "no such order");
}

TEST(SqlAnswer, AnythingElseIsAnErrorThatQuotesIt) {
  for (const char* answer :
       {"null", "true", "7", R"("done")", "[]", "{}", R"({"done": true})", R"({"retry_ms": "1"})",
        R"({"retry_ms": -1})", R"({"retry_ms": 1.5})", R"({"retry_ms": 1e300})", R"({"retry_ms": null})",
        R"({"dead": null})", R"({"dead": 1})", R"({"dead": "x", "retry_ms": 1})", "not json"}) {
    const auto outcome = outcome_of(answer);
    ASSERT_FALSE(outcome) << answer;
    EXPECT_NE(outcome.error().message.find(answer), std::string::npos) << outcome.error().message;
  }
}

// One thread, so that the fake database, which has one owner, is safe.
class SqlHandlerTest : public testing::Test {
 protected:
  void SetUp() override {
    business_.functions["done"] = [](const Job& job, auto& effects) {
      ++effects[job.biz_id];
      return std::nullopt;
    };
    business_.functions["picky"] = [](const Job& job, auto& effects) -> std::optional<std::string> {
      ++effects[job.biz_id];
      if (job.biz_id.starts_with("bad")) throw std::runtime_error("not " + job.biz_id);
      return {};
    };
    BizType type = type_of("done");
    type.type_id = database_.put_type(type, now_).type.type_id;
    type_id_ = type.type_id;
    kind_.emplace(FunctionDatabases{1, [](Shard) { return 0; }, [this](int) { return new_store(); }}, 1, "node-a",
                  clock_);
  }
  static BizType type_of(const std::string& function) {
    BizType type;
    type.name = "order.unpaid";
    type.handler_kind = "sql";
    type.handler_json = R"({"kind":"sql","function":"shop.)" + function + "\"}";
    return type;
  }
  std::vector<ClaimedJob> claimed(const std::vector<std::string>& biz_ids) {
    std::vector<NewJob> jobs;
    for (const std::string& biz_id : biz_ids) {
      NewJob& job = jobs.emplace_back();
      job.biz_id = biz_id;
      job.type_id = type_id_;
      job.when.in = Duration(0);
    }
    const auto created = database_.create(jobs, CreateMode::each_by_itself, now_);
    std::vector<Candidate> ids;
    for (const CreateReply& reply : *created) ids.push_back({reply.job_id, type_id_, {}});
    auto won = database_.claim(ids, std::vector<Duration>(ids.size(), 30s), {77, "node-a"}, now_).won;
    for (ClaimedJob& job : won) job.lease_deadline = clock_.now() + 30s;
    return won;
  }
  std::map<std::string, Outcome> run(const std::string& function, const std::vector<ClaimedJob>& jobs) {
    const auto handler = kind_->make(type_of(function));
    std::mutex mutex;
    std::map<std::string, Outcome> outcomes;
    std::latch ended(static_cast<std::ptrdiff_t>(jobs.size()));
    for (const ClaimedJob& job : jobs) {
      handler->start(job, [&, biz_id = job.job.biz_id](Outcome outcome) {
        {
          std::lock_guard lock(mutex);
          outcomes[biz_id] = std::move(outcome);
        }
        ended.count_down();
      });
      if (job.job.biz_id == "gate") has_gate_begun_.wait(false);
    }
    is_all_there_ = true;
    is_all_there_.notify_all();
    ended.wait();
    return outcomes;
  }
  // Of the function "picky": what a job named "gate", the first one, does: it runs alone until all others wait, so that
  // they are one batch.
  void wait_for_all(const Job& job) {
    if (job.biz_id != "gate") return;
    has_gate_begun_ = true;
    has_gate_begun_.notify_all();
    is_all_there_.wait(false);
  }

  WallTime now_{std::chrono::sys_days(std::chrono::year(2026) / 3 / 1)};
  ManualClock clock_;
  FakeDatabase database_{[this] { return now_; }, 4};
  FakeBusiness business_;
  int lose_answers_ = 0;  // of the next session
  std::atomic<bool> has_gate_begun_{false}, is_all_there_{false};
  TypeId type_id_ = 0;
  std::optional<SqlKind> kind_;
  std::unique_ptr<FunctionStore> new_store() {
    auto store = std::make_unique<FakeFunctionStore>(database_, business_);
    store->lose_answers = lose_answers_;
    return store;
  }
};

TEST_F(SqlHandlerTest, CallsNoFunctionWhileItIsNotAllowed) {
  std::string refusal = "the role is a superuser";
  FunctionDatabases databases{1, [](Shard) { return 0; }, [this](int) { return new_store(); }};
  databases.refusal = [&] { return refusal; };
  SqlKind kind(std::move(databases), 1, "node-a", clock_);
  BizType type = type_of("done");
  type.type_id = type_id_;
  const auto refused = kind.check(type);
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->field, "handler.kind");
  EXPECT_EQ(refused->message, refusal);
  EXPECT_EQ(kind.make(type), nullptr) << "its jobs are not claimed";
  refusal.clear();
  const auto handler = kind.make(type);
  ASSERT_NE(handler, nullptr);
  EXPECT_EQ(kind.check(type), std::nullopt);
  refusal = "another database turned out to be like that";
  EXPECT_EQ(handler->hold_reason(), refusal);
  std::optional<Outcome> outcome;
  handler->start(claimed({"a"}).front(), [&](Outcome end) { outcome = std::move(end); });
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->kind, Outcome::Kind::not_started);
  EXPECT_EQ(business_.effects["a"], 0);
}

TEST_F(SqlHandlerTest, ReportsThatItHasWrittenTheOutcome) {
  const auto outcomes = run("done", claimed({"a", "b", "c"}));
  for (const auto& [biz_id, outcome] : outcomes) {
    EXPECT_EQ(outcome.kind, Outcome::Kind::done);
    EXPECT_TRUE(outcome.is_written);
  }
  EXPECT_EQ(database_.history().size(), 3U);
}

TEST_F(SqlHandlerTest, ReportsWhenItsRetriesAreDue) {
  business_.functions["done"] = [](const Job&, auto&) -> std::optional<std::string> { return R"({"retry_ms": 20})"; };
  const Outcome outcome = run("done", claimed({"a"}))["a"];
  EXPECT_EQ(outcome.kind, Outcome::Kind::retry);
  EXPECT_EQ(outcome.retry_after, Duration(20ms));
}

TEST_F(SqlHandlerTest, FindsTheFailingJobAndFinishesTheRest) {
  std::vector<std::string> names;
  for (int i = 0; i < 40; ++i) names.push_back((i == 13 || i == 14 ? "bad" : "good") + std::to_string(i));
  for (const auto& [biz_id, outcome] : run("picky", claimed(names))) {
    const bool is_bad = biz_id.starts_with("bad");
    EXPECT_EQ(outcome.kind, is_bad ? Outcome::Kind::retry : Outcome::Kind::done) << biz_id;
    EXPECT_EQ(outcome.is_written, !is_bad);
    EXPECT_EQ(outcome.message, is_bad ? "not " + biz_id : "");
    EXPECT_EQ(business_.effects[biz_id], is_bad ? 0 : 1) << biz_id;
  }
}

TEST_F(SqlHandlerTest, AHangingJobOfABatchCostsTheOthersNoAttempt) {
  int calls_of_the_bad = 0;
  business_.functions["picky"] = [&](const Job& job, auto& effects) -> std::optional<std::string> {
    wait_for_all(job);
    ++effects[job.biz_id];
    if (job.biz_id == "bad") throw TookTooLong(++calls_of_the_bad);
    return {};
  };
  std::vector<std::string> names = {"gate", "bad"};
  for (int i = 0; i < 20; ++i) names.push_back("good" + std::to_string(i));
  for (const auto& [biz_id, outcome] : run("picky", claimed(names))) {
    EXPECT_EQ(outcome.kind, biz_id == "bad" ? Outcome::Kind::retry : Outcome::Kind::done) << biz_id;
    EXPECT_EQ(business_.effects[biz_id], biz_id == "bad" ? 0 : 1) << biz_id;
  }
  EXPECT_EQ(calls_of_the_bad, 2) << "in the batch, and alone";
}

TEST_F(SqlHandlerTest, AHangingAndAFailingJobCostTheOthersNoAttempt) {
  business_.functions["picky"] = [&](const Job& job, auto& effects) -> std::optional<std::string> {
    wait_for_all(job);
    ++effects[job.biz_id];
    if (job.biz_id == "fails") throw std::runtime_error("not this one");
    if (job.biz_id == "hangs") {
      if (!effects.contains("good1")) clock_.advance(25s);  // it takes its time, before the others had theirs
      throw TookTooLong(1);
    }
    return {};
  };
  for (const auto& [biz_id, outcome] : run("picky", claimed({"gate", "fails", "hangs", "good1", "good2"})))
    EXPECT_EQ(outcome.kind, biz_id.starts_with("g") ? Outcome::Kind::done : Outcome::Kind::retry) << biz_id;
}

TEST_F(SqlHandlerTest, JobsBehindAHangingOneAreReleasedInTime) {
  std::promise<void> begun, unblock;
  business_.functions["picky"] = [&](const Job& job, auto& effects) -> std::optional<std::string> {
    ++effects[job.biz_id];
    if (job.biz_id == "slow") {
      begun.set_value();
      unblock.get_future().wait();
    }
    return {};
  };
  const auto handler = kind_->make(type_of("picky"));
  std::vector<std::promise<Outcome>> outcomes(2);
  auto jobs = claimed({"slow", "waits"});
  for (std::size_t i = 0; i < 2; ++i) {
    jobs[i].job.attempts = 2;  // alone
    handler->start(jobs[i], [&, i](Outcome outcome) { outcomes[i].set_value(std::move(outcome)); });
  }
  begun.get_future().wait();
  clock_.advance(4s);
  EXPECT_EQ(outcomes[1].get_future().get().kind, Outcome::Kind::not_started);
  unblock.set_value();
  EXPECT_EQ(outcomes[0].get_future().get().kind, Outcome::Kind::done);
  EXPECT_EQ(business_.effects["waits"], 0);
}

// It would have less than its time.
TEST_F(SqlHandlerTest, JobsWithTooLittleOfTheirLeaseLeftAreReleased) {
  business_.functions["picky"] = [&](const Job& job, auto&) -> std::optional<std::string> {
    wait_for_all(job);
    if (job.biz_id == "gate") return {};
    clock_.advance(7s);
    throw TookTooLong(1);
  };
  for (const auto& [biz_id, outcome] : run("picky", claimed({"gate", "a", "b", "c"})))
    EXPECT_TRUE(biz_id == "gate" || outcome.kind == Outcome::Kind::not_started) << biz_id;
}

// The outcome is not known, so the handler asks for a retry; the token, which the commit has used up, refuses it.
TEST_F(SqlHandlerTest, AnAnswerLostAfterTheCommitChangesNothing) {
  lose_answers_ = 1;
  const auto jobs = claimed({"a"});
  const auto outcome = run("done", jobs)["a"];
  EXPECT_EQ(outcome.kind, Outcome::Kind::retry);
  EXPECT_FALSE(outcome.is_written);
  const auto replies = database_.finish(
      {{jobs[0].job.job_id, jobs[0].token, FinishRequest::Kind::retry, Duration(0), outcome.message}}, "node-a", now_);
  EXPECT_EQ(replies[0], FinishReply::stale);
  EXPECT_EQ(database_.history().begin()->second.job.status, JobStatus::done);
  EXPECT_EQ(run("done", jobs)["a"].kind, Outcome::Kind::not_started) << "repeated, it calls nothing";
  EXPECT_EQ(business_.effects["a"], 1);
}

TEST_F(SqlHandlerTest, StartsNothingAfterItsLeaseNorAfterTheStop) {
  auto jobs = claimed({"a"});
  jobs[0].lease_deadline = clock_.now();
  EXPECT_EQ(run("done", jobs)["a"].kind, Outcome::Kind::not_started);
  kind_->stop(0s);
  EXPECT_EQ(run("done", claimed({"b"}))["b"].kind, Outcome::Kind::not_started);
  EXPECT_EQ(business_.effects["a"] + business_.effects["b"], 0);
}

TEST_F(SqlHandlerTest, RefusesSettingsByName) {
  BizType type = type_of("done");
  EXPECT_FALSE(kind_->check(type));
  for (const auto& [json, field] : {std::pair(R"({"kind":"sql"})", "handler.function"),
                                    {R"({"kind":"sql","function":7})", "handler.function"},
                                    {R"({"kind":"sql","function":"done"})", "handler.function"},
                                    {R"({"kind":"sql","function":"shop.missing"})", "handler.function"},
                                    {R"({"kind":"sql","function":"shop.done","x":1})", "handler.x"}}) {
    type.handler_json = json;
    const auto error = kind_->check(type);
    ASSERT_TRUE(error) << json;
    EXPECT_EQ(error->field, field) << json;
  }
}

TEST_F(SqlHandlerTest, StartsNothingInADatabaseThatItDoesNotHave) {
  kind_.emplace(FunctionDatabases{.of = [](Shard) { return -1; }, .connect = {}, .name = {}}, 1, "node-a", clock_);
  EXPECT_EQ(run("done", claimed({"a"}))["a"].kind, Outcome::Kind::not_started);
}

TEST_F(SqlHandlerTest, ACheckNamesTheDatabaseThatLacksTheFunction) {
  FakeDatabase second_database{[this] { return now_; }, 4};
  FakeBusiness second;
  kind_.emplace(FunctionDatabases{2, [](Shard) { return 0; },
                                  [&](int database) {
                                    return std::make_unique<FakeFunctionStore>(
                                        database == 0 ? database_ : second_database,
                                        database == 0 ? business_ : second);
                                  },
                                  [](int database) { return "shop_" + std::to_string(database); }},
                1, "node-a", clock_);
  const auto error = kind_->check(type_of("done"));
  ASSERT_TRUE(error);
  EXPECT_NE(error->message.find("shop_1"), std::string::npos) << error->message;
  EXPECT_EQ(error->field, "handler.function");
  kind_.reset();
}

}  // namespace
}  // namespace tocsin

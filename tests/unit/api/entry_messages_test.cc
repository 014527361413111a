#include "api/entry_messages.h"

#include <gtest/gtest.h>

#include <set>

#include "support/fake_backend.h"

namespace tocsin {
namespace {

using namespace std::chrono_literals;
using Kind = EntryAnswer::Kind;

class EntryTest : public testing::Test {
 protected:
  EntryTest() { backend.add_type("order.unpaid"); }

  Result<std::vector<EntryAnswer>> take(const std::vector<EntryMessage>& messages) {
    return create_jobs_from_messages(context, messages);
  }
  EntryAnswer must_take(const EntryMessage& message) {
    const auto answers = take({message});
    EXPECT_TRUE(answers.ok());
    return answers ? answers->at(0) : EntryAnswer{Kind::refused, "no answer"};
  }
  EntryAnswer take(const std::string& body, const std::string& id = "m-1", const std::string& key = "",
                   std::optional<WallTime> sent_at = {}) {
    return must_take(EntryMessage{body, id, key, sent_at});
  }
  static std::string with(const std::string& more) { return R"({"realTopicName":"order.unpaid",)" + more + "}"; }
  std::vector<Job> jobs() const { return backend.database.list(JobFilter{}); }
  Job only_job() const {
    const auto all = jobs();
    EXPECT_EQ(all.size(), 1U);
    return all.at(0);
  }

  FakeBackend backend;
  ApiContext context{backend, 64};
};

TEST_F(EntryTest, AMessageBecomesAJob) {
  EXPECT_EQ(take(with(R"("delayTime":60000,"message":{"n":1.5},"biz_id":17,"max_attempts":3)")).kind, Kind::created);
  const Job job = only_job();
  EXPECT_EQ(job.biz_id, "17");
  EXPECT_EQ(job.attribute_json, R"({"n":1.5})");
  EXPECT_EQ(job.idempotency_key, "m-1");
  EXPECT_EQ(job.max_attempts, 3);
}

TEST_F(EntryTest, TheDelayCountsFromTheSendingWhenThatIsKnown) {
  const WallTime sent = backend.time - 10min;
  EXPECT_EQ(take(with(R"("delayTime":900000)"), "a", "", sent).kind, Kind::created);
  EXPECT_EQ(only_job().action_time, sent + 15min);
}

TEST_F(EntryTest, TheDelayCountsFromTheReceiptOtherwise) {
  const auto take_after = [&](Duration waited) {
    EntryMessage message{with(R"("delayTime":900000)"), "a", "", {}};
    message.waited = waited;
    return must_take(message).kind;
  };
  EXPECT_EQ(take_after(1h), Kind::created);
  EXPECT_EQ(only_job().action_time, backend.time - 45min) << "the database was down for an hour";
  EXPECT_EQ(only_job().fire_at, backend.time);
  EXPECT_EQ(take_after(0s), Kind::existing) << "received again after a create without an answer";
}

TEST_F(EntryTest, AnAbsoluteTimeIsUsedUnchanged) {
  EXPECT_EQ(take(with(R"("action_time":"2026-03-01T13:00:00+01:00")"), "a", "", backend.time).kind, Kind::created);
  EXPECT_EQ(only_job().action_time, WallTime(std::chrono::sys_days(std::chrono::year(2026) / 3 / 1) + 12h));
}

TEST_F(EntryTest, TheBusinessKeyIsTheFieldOrTheKeyOrTheId) {
  take(with(R"("delayTime":1,"biz_id":"field")"), "id-1", "key");
  take(with(R"("delayTime":1)"), "id-2", "key");
  take(with(R"("delayTime":1)"), "id-3");
  take(with(R"("delayTime":1)"), "id-4", "\xff\xfe");
  take(with(R"("delayTime":1)"), std::string(200, 'x'));
  std::multiset<std::string> keys;
  for (const Job& job : jobs()) keys.insert(job.biz_id.substr(0, 8));
  EXPECT_EQ(keys.count("field"), 1U);
  EXPECT_EQ(keys.count("key"), 1U);
  EXPECT_EQ(keys.count("id-3"), 1U);
  EXPECT_EQ(keys.count("id-4"), 1U) << "a key that is no text is none";
  EXPECT_EQ(keys.size(), 5U) << "an id that is too long for a business key is digested";
}

TEST_F(EntryTest, TheSameMessageAgainChangesNothing) {
  EXPECT_EQ(take(with(R"("delayTime":5000)"), "a").kind, Kind::created);
  backend.time += 1s;
  EXPECT_EQ(take(with(R"("delayTime":5000)"), "a").kind, Kind::existing);
  EXPECT_EQ(take(with(R"("delayTime":7000)"), "a").kind, Kind::refused) << "another message under the same id";
  EXPECT_EQ(take(with(R"("delayTime":5000)"), std::string("\xff\x00", 2)).kind, Kind::created);
  EXPECT_EQ(take(with(R"("delayTime":5000)"), std::string("\xff\x00", 2)).kind, Kind::existing);
  EXPECT_EQ(jobs().size(), 2U);
}

TEST_F(EntryTest, AMessageThatItsProducerRepeatsIsADuplicate) {
  const WallTime sent = backend.time;
  EXPECT_EQ(take(with(R"("delayTime":900000)"), "a", "", sent).kind, Kind::created);
  EXPECT_EQ(take(with(R"("delayTime":900000)"), "a", "", sent + 5s).kind, Kind::existing);
  EXPECT_EQ(only_job().action_time, sent + 15min);
  EXPECT_EQ(take(with(R"("delayTime":800000)"), "a", "", sent + 5s).kind, Kind::refused);
}

TEST_F(EntryTest, AMessageThatAnOlderBuildTookIsADuplicate) {
  const WallTime sent = backend.time;
  NewJob job;
  job.biz_id = "a";
  job.type_id = backend.types()->find("order.unpaid")->type_id;
  job.max_attempts = backend.types()->find("order.unpaid")->max_attempts;
  job.when.at = sent + 15min;  // its body was stored with the instant, where it has the delay now
  job.idempotency_key = "a";
  ASSERT_TRUE(backend.database.create({job}, CreateMode::all_or_nothing, backend.time).ok());
  EXPECT_EQ(take(with(R"("delayTime":900000)"), "a", "", sent).kind, Kind::existing);
  EXPECT_EQ(take(with(R"("delayTime":900000,"message":1)"), "a", "", sent).kind, Kind::refused);
  EXPECT_EQ(jobs().size(), 1U);
}

TEST_F(EntryTest, AnInvalidMessageNamesTheReason) {
  const std::pair<std::string, const char*> table[] = {
      {"", "JSON"},
      {"5", "object"},
      {"\xff", "JSON"},
      {R"({"delayTime":5})", "realTopicName"},
      {R"({"realTopicName":"unknown","delayTime":5})", "unknown"},
      {with(R"("message":1)"), "delayTime"},
      {with(R"("delayTime":"5")"), "delayTime"},
      {with(R"("delayTime":-1)"), "delayTime"},
      {with(R"("delayTime":1.5)"), "delayTime"},
      {with(R"("delayTime":99999999999999)"), "delayTime"},
      {with(R"("delayTime":1,"action_time":"2026-03-01T13:00:00Z")"), "delayTime"},
      {with(R"("action_time":"tomorrow")"), "action_time"},
      {with(R"("action_time":"1999-01-01T00:00:00Z")"), "action_time"},
      {with(R"("delayTime":1,"biz_id":"")"), "biz_id"},
      {with(R"("delayTime":1,"max_attempts":0)"), "max_attempts"},
      {with(R"("delayTime":1,"topic":"x")"), "topic"},
      {with(R"("delayTime":1,"message":")" + std::string(100, 'x') + "\""), "message"},
  };
  for (const auto& [body, word] : table) {
    const EntryAnswer answer = take(body);
    EXPECT_EQ(answer.kind, Kind::refused) << body;
    EXPECT_NE(answer.why.find(word), std::string::npos) << body << ": " << answer.why;
  }
  EXPECT_TRUE(jobs().empty());
}

TEST_F(EntryTest, OneBadMessageUndoesNoOther) {
  const auto answers =
      take({{with(R"("delayTime":1)"), "a", "", {}}, {"bad", "b", "", {}}, {with(R"("delayTime":1)"), "c", "", {}}});
  ASSERT_TRUE(answers.ok());
  EXPECT_EQ(answers->at(0).kind, Kind::created);
  EXPECT_EQ(answers->at(1).kind, Kind::refused);
  EXPECT_EQ(answers->at(2).kind, Kind::created);
  EXPECT_EQ(backend.hints.size(), 2U) << "due soon: the engine is told at once";
}

TEST_F(EntryTest, ADatabaseThatDoesNotAnswerLeavesTheMessage) {
  for (const ErrorCode code : {ErrorCode::unavailable, ErrorCode::in_doubt, ErrorCode::conflict}) {
    backend.fails = code;
    EXPECT_FALSE(take(std::vector<EntryMessage>{{with(R"("delayTime":1)"), "a", "", {}}}).ok());
  }
  backend.fails = {};
  EXPECT_NE(take(with(R"("delayTime":1)"), "a").kind, Kind::refused) << "once more, and nothing is doubled";
  EXPECT_EQ(jobs().size(), 1U);
}

}  // namespace
}  // namespace tocsin

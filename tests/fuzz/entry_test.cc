// Messages of entry topics that are almost right: each becomes one job or is refused for a reason, and says the same
// when it is given again.
#include <gtest/gtest.h>

#include "api/entry_messages.h"
#include "api/job_json.h"
#include "base/utf8.h"
#include "fuzz/mutator.h"
#include "support/fake_backend.h"

namespace tocsin {
namespace {

const std::vector<std::string> kMessages = {
    R"({"realTopicName":"order.unpaid","delayTime":60000,"message":{"n":1.5},"biz_id":17,"max_attempts":3})",
    R"({"realTopicName":"order.unpaid","action_time":"2026-03-01T13:00:00+01:00","message":[1,"a",null]})",
    R"({"realTopicName":"order.unpaid","delayTime":0,"biz_id":"o-1"})",
};
const std::vector<std::string> kNames = {"m-1", "", "order-4711", std::string(300, 'x'), "\xe2\x82\xac"};
const std::vector<std::string> kMessageSpice = {
    "null",
    "-1",
    "1e400",
    "1577923200001",
    "9223372036854775808",
    "\"\"",
    "[]",
    "{",
    "}",
    "\"",
    "\\u0000",
    "\\ud800",
    "\xff",
    std::string(1, '\0'),
    std::string(300, 'x'),
    std::string(70'000, '['),
    "1999-12-31T23:59:59.9999999Z",
    "order.paid",
    "\"delayTime\":1,",
    "\"realTopicName\":",
    "\"message\":",
};

EntryMessage message_of(Mutator& mutator, WallTime now) {
  EntryMessage message;
  message.body = mutator.mutate(mutator.any_of(kMessages), kMessageSpice);
  message.id = mutator.mutate(mutator.any_of(kNames), kMessageSpice);
  message.key = mutator.mutate(mutator.any_of(kNames), kMessageSpice);
  const std::vector<std::optional<WallTime>> sent = {
      {}, now, now - std::chrono::hours(1), WallTime(), WallTime::min(), now + kMaxDelay};
  message.sent_at = mutator.any_of(sent);
  return message;
}

void expect_storable(const Job& job, WallTime now, const std::string& what) {
  const auto is_text = [](const std::string& text, std::size_t most) {
    return !text.empty() && text.size() <= most && is_utf8(text) && text.find('\0') == text.npos;
  };
  EXPECT_TRUE(is_text(job.biz_id, kMaxBizIdBytes)) << what;
  EXPECT_TRUE(job.idempotency_key && is_text(*job.idempotency_key, kMaxKeyBytes)) << what;
  EXPECT_TRUE(is_utf8(job.attribute_json)) << what;
  EXPECT_GE(job.action_time, WallTime(std::chrono::sys_days(std::chrono::year(2000) / 1 / 1))) << what;
  EXPECT_LE(job.action_time, now + kMaxDelay) << what;
  EXPECT_TRUE(job.max_attempts >= 1 && job.max_attempts <= kMaxAttempts) << what;
}

void try_message(std::uint64_t seed) {
  FakeBackend backend;
  backend.add_type("order.unpaid");
  ApiContext context{backend, 65536};
  Mutator mutator(seed);
  const EntryMessage message = message_of(mutator, backend.time);
  const std::string what = "seed " + std::to_string(seed) + ": " + message.body.substr(0, 500);
  using Kind = EntryAnswer::Kind;
  const auto first = create_jobs_from_messages(context, {&message, 1});
  ASSERT_TRUE(first.ok() && first->size() == 1) << what;
  const bool is_refused = first->front().kind == Kind::refused;
  ASSERT_EQ(backend.database.live().size(), is_refused ? 0U : 1U) << what;
  if (is_refused) {
    EXPECT_TRUE(!first->front().why.empty() && is_utf8(first->front().why)) << what;
  } else {
    expect_storable(backend.database.list(JobFilter{}).front(), backend.time, what);
  }
  const auto again = create_jobs_from_messages(context, {&message, 1});
  ASSERT_TRUE(again.ok() && again->size() == 1) << what;
  EXPECT_EQ(again->front().kind, is_refused ? Kind::refused : Kind::existing) << what << '\n' << again->front().why;
}

TEST(EntryFuzz, AMessageIsOneJobOrIsRefusedForAReason) {
  const auto [first, last] = fuzz_seeds(20'000);
  for (std::uint64_t seed = first; seed <= last && !testing::Test::HasFailure(); ++seed) try_message(seed);
}

}  // namespace
}  // namespace tocsin

// What must hold of a message of an entry topic, whatever its bytes are.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "api/entry_messages.h"
#include "api/job_json.h"
#include "base/utf8.h"
#include "support/fake_backend.h"

namespace tocsin {

inline const std::vector<std::string> kMessages = {
    R"({"realTopicName":"order.unpaid","delayTime":60000,"message":{"n":1.5},"biz_id":17,"max_attempts":3})",
    R"({"realTopicName":"order.unpaid","action_time":"2026-03-01T13:00:00+01:00","message":[1,"a",null]})",
    R"({"realTopicName":"order.unpaid","delayTime":0,"biz_id":"o-1"})",
};
inline const std::vector<std::string> kMessageSpice = {
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

inline void expect_storable(const Job& job, WallTime now, const std::string& what) {
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

// Fails unless the message becomes one job that can be stored, or is refused for a reason, and has the same answer when
// it is given again. `origin`: of the message, for messages of the test.
inline void check_entry_message(const std::function<EntryMessage(WallTime now)>& message_at,
                                const std::string& origin) {
  FakeBackend backend;
  backend.add_type("order.unpaid");
  ApiContext context{backend, 65536};
  const EntryMessage message = message_at(backend.time);
  const std::string what = origin + ": " + message.body.substr(0, 500);
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

}  // namespace tocsin

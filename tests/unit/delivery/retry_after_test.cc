#include "delivery/retry_after.h"

#include <gtest/gtest.h>

namespace tocsin {
namespace {

using namespace std::chrono_literals;

TEST(RetryAfter, ReadsSecondsAndDates) {
  const WallTime now{std::chrono::seconds(784111777) - 90s};  // a minute and a half before the example of RFC 9110
  EXPECT_EQ(read_retry_after("1", now), 1s);
  EXPECT_EQ(read_retry_after("00017", now), 17s);
  EXPECT_EQ(read_retry_after("Sun, 06 Nov 1994 08:49:37 GMT", now), 90s);
  EXPECT_EQ(read_retry_after("Sunday, 06-Nov-94 08:49:37 GMT", now), 90s);
  EXPECT_EQ(read_retry_after("Sun Nov  6 08:49:37 1994", now), 90s);
}

TEST(RetryAfter, CapsLongDelays) {
  const WallTime now{std::chrono::seconds(784111777)};
  EXPECT_EQ(read_retry_after("86401", now), 24h);
  EXPECT_EQ(read_retry_after("99999999999999999999999999", now), 24h);
  EXPECT_EQ(read_retry_after("Fri, 31 Dec 9999 23:59:59 GMT", now), 24h);
}

TEST(RetryAfter, LeavesTheRestToTheBackoff) {
  const WallTime now{std::chrono::seconds(784111777)};
  for (const char* text : {"", "0", "000", "-5", "1.5", "1e3", " 1", "1 ", "soon", "Sun, 06 Nov 1994 08:49:36 GMT",
                           "Sun, 06 Nov 1994 08:49:37", "Sun, 06 Nov 1994 08:49:37 GMT!",
                           "Sun, 36 Nov 1994 08:49:37 GMT", "2026-01-01T00:00:00Z"}) {
    EXPECT_EQ(read_retry_after(text, now), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace tocsin

#include "delivery/circuit_breaker.h"

#include <gtest/gtest.h>

#include <limits>

namespace tocsin {
namespace {

using namespace std::chrono_literals;
using State = CircuitBreaker::State;

class Breaker : public testing::Test {
 protected:
  void fail(int n) {
    for (int i = 0; i < n; ++i) breaker_.failed(*breaker_.admit(now_), now_);
  }
  // Fails the one attempt that is allowed after the pause; the pause that follows.
  Duration fail_probe() {
    now_ += breaker_.pause_left(now_);
    breaker_.failed(*breaker_.admit(now_), now_);
    return breaker_.pause_left(now_);
  }

  MonoTime now_{1000s};
  CircuitBreaker breaker_{{.failures = 3, .first_pause = 1s, .longest_pause = 5s}};
};

TEST_F(Breaker, OpensAfterARowOfFailures) {
  breaker_.answered();
  fail(2);
  EXPECT_EQ(breaker_.state(now_), State::closed);
  EXPECT_FALSE(breaker_.answered()) << "nothing changed";
  fail(2);
  EXPECT_EQ(breaker_.state(now_), State::closed) << "the row was broken by an answer";
  EXPECT_TRUE(breaker_.failed(*breaker_.admit(now_), now_));
  EXPECT_EQ(breaker_.state(now_), State::open);
  EXPECT_EQ(breaker_.pause_left(now_), 1s);
  EXPECT_FALSE(breaker_.admit(now_ + 999ms));
}

TEST_F(Breaker, TriesOneAtATimeAfterThePause) {
  fail(3);
  now_ += 1s;
  EXPECT_EQ(breaker_.state(now_), State::half_open);
  const auto probe = breaker_.admit(now_);
  ASSERT_TRUE(probe);
  EXPECT_FALSE(breaker_.admit(now_ + 100s));
  EXPECT_TRUE(breaker_.answered());
  EXPECT_EQ(breaker_.state(now_), State::closed);
  EXPECT_TRUE(breaker_.admit(now_));
  EXPECT_TRUE(breaker_.admit(now_));
}

TEST_F(Breaker, LimitsAttemptsAtAnUntriedEndpoint) {
  constexpr std::size_t kAny = std::numeric_limits<std::size_t>::max();
  EXPECT_EQ(breaker_.capacity(now_, 0), 128U);
  EXPECT_TRUE(breaker_.answered()) << "there is more room";
  EXPECT_EQ(breaker_.capacity(now_, 0), kAny);
  EXPECT_FALSE(breaker_.answered());
  fail(3);
  EXPECT_EQ(breaker_.capacity(now_, 0), 0U);
  now_ += 1s;
  EXPECT_EQ(breaker_.capacity(now_, 0), 1U);
  breaker_.admit(now_);
  EXPECT_TRUE(breaker_.answered());
  EXPECT_EQ(breaker_.capacity(now_, 0), kAny);
}

TEST_F(Breaker, OlderAttemptsThatHangLeaveRoomForTheProbe) {
  for (int i = 0; i < 5; ++i) breaker_.admit(now_);  // they hang
  fail(3);
  EXPECT_EQ(breaker_.capacity(now_, 5), 0U);
  now_ += 1s;
  EXPECT_EQ(breaker_.capacity(now_, 5), 6U);
  const auto probe = breaker_.admit(now_);
  EXPECT_EQ(breaker_.capacity(now_, 6), 6U) << "one at a time";
  EXPECT_TRUE(breaker_.abandoned(*probe));
  EXPECT_EQ(breaker_.capacity(now_, 5), 6U);
}

TEST_F(Breaker, PausesLongerAndLongerWhileItStaysSilent) {
  fail(3);
  EXPECT_EQ(fail_probe(), 2s);
  EXPECT_EQ(fail_probe(), 4s);
  EXPECT_EQ(fail_probe(), 5s);
  EXPECT_EQ(fail_probe(), 5s);
}

TEST_F(Breaker, RemembersItsPauseThroughAShortRecovery) {
  fail(3);
  fail_probe();
  now_ += breaker_.pause_left(now_);
  breaker_.admit(now_);
  breaker_.answered();
  fail(3);
  EXPECT_EQ(breaker_.pause_left(now_), 4s);
  now_ += breaker_.pause_left(now_);
  breaker_.admit(now_);
  breaker_.answered();
  now_ += 5s;
  fail(3);
  EXPECT_EQ(breaker_.pause_left(now_), 1s) << "it had been well for long enough";
}

TEST_F(Breaker, LearnsNothingFromAttemptsThatBeganBeforeTheChange) {
  const auto old = breaker_.admit(now_);
  fail(3);
  EXPECT_FALSE(breaker_.failed(*old, now_));
  EXPECT_FALSE(breaker_.abandoned(*old));
  now_ += 1s;
  const auto probe = breaker_.admit(now_);
  EXPECT_FALSE(breaker_.failed(*old, now_)) << "the probe is still on its way";
  EXPECT_EQ(breaker_.state(now_), State::half_open);
  EXPECT_TRUE(breaker_.failed(*probe, now_));
  EXPECT_EQ(breaker_.pause_left(now_), 2s);
}

TEST_F(Breaker, TreatsAnyAnswerAsAvailable) {
  fail(3);
  EXPECT_TRUE(breaker_.answered()) << "of an attempt that began earlier";
  EXPECT_EQ(breaker_.state(now_), State::closed);
}

TEST_F(Breaker, AllowsAnotherProbeWhenOneWasAbandoned) {
  fail(3);
  now_ += 1s;
  const auto probe = breaker_.admit(now_);
  EXPECT_TRUE(breaker_.abandoned(*probe));
  EXPECT_EQ(breaker_.state(now_), State::half_open);
  EXPECT_TRUE(breaker_.admit(now_));
}

}  // namespace
}  // namespace tocsin

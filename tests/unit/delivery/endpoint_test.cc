// How many attempts an endpoint may have at once.
#include <gtest/gtest.h>

#include "delivery/endpoints.h"
#include "support/manual_clock.h"

namespace tocsin {
namespace {

using namespace std::chrono_literals;

class EndpointTest : public testing::Test {
 protected:
  void answer(int n, Duration took) {
    for (int i = 0; i < n; ++i) endpoint.answered(took);
  }
  ManualClock clock;
  Endpoint endpoint{"http://shop:80", {.failures = 3}, 256, clock, [](Endpoint::State, MonoTime) {}};
};

TEST_F(EndpointTest, AQuickEndpointQueuesAsManyAsAreInFlight) {
  EXPECT_EQ(endpoint.capacity(), 128U) << "nothing is known of it yet";
  answer(1, 5ms);
  EXPECT_EQ(endpoint.capacity(), 512U);
  EXPECT_NEAR(endpoint.starts_per_s(), 51'200, 1);
}

TEST_F(EndpointTest, ASlowEndpointHasNoQueue) {
  answer(1, 10s);
  EXPECT_EQ(endpoint.capacity(), 256U);
  EXPECT_NEAR(endpoint.starts_per_s(), 25.6, 0.1);
}

TEST_F(EndpointTest, AModerateEndpointQueuesWhatStartsInTime) {
  answer(1, 400ms);
  EXPECT_EQ(endpoint.capacity(), 256U + 64U);
}

TEST_F(EndpointTest, QueueBoundsChangeAt100MillisecondsAndAtASecond) {
  const auto capacity_after = [this](Duration answer) {
    Endpoint one{"http://shop:80", {.failures = 3}, 256, clock, [](Endpoint::State, MonoTime) {}};
    one.answered(answer);
    return one.capacity();
  };
  EXPECT_EQ(capacity_after(100ms - 1us), 512U);
  EXPECT_EQ(capacity_after(100ms), 512U);
  EXPECT_EQ(capacity_after(100ms + 1us), 511U);
  EXPECT_EQ(capacity_after(1s - 1us), 256U + 25U);
  EXPECT_EQ(capacity_after(1s), 256U);
}

TEST_F(EndpointTest, AWaitInVainClosesTheQueueUntilAnswersAreQuick) {
  answer(50, 5ms);
  endpoint.connection_wait_timed_out();
  EXPECT_EQ(endpoint.capacity(), 256U);
  answer(50, 5ms);
  EXPECT_EQ(endpoint.capacity(), 512U);
}

TEST_F(EndpointTest, AnUnansweredAttemptCountsWithItsDuration) {
  answer(1, 5ms);
  for (int i = 0; i < 2; ++i) endpoint.failed(*endpoint.admit(), 30s);
  EXPECT_EQ(endpoint.capacity(), 256U);
  endpoint.failed(*endpoint.admit(), 30s);
  EXPECT_EQ(endpoint.capacity(), 0U) << "its breaker is open";
}

// Their slots in the start pool are taken until they end, which may be long after the endpoint works again.
TEST_F(EndpointTest, AProbeDoesNotWaitForAttemptsThatHang) {
  answer(1, 5ms);
  std::vector<Endpoint::Permit> hung;
  for (int i = 0; i < 40; ++i) hung.push_back(*endpoint.admit());
  for (int i = 0; i < 3; ++i) endpoint.failed(*endpoint.admit(), 5ms);
  EXPECT_EQ(endpoint.capacity(), 0U);
  clock.advance(1s);
  EXPECT_EQ(endpoint.capacity(), 41U);
  ASSERT_TRUE(endpoint.admit());
  EXPECT_EQ(endpoint.capacity(), 41U) << "the probe is under way";
  EXPECT_FALSE(endpoint.admit());
  endpoint.failed(hung[0], 30s);
  EXPECT_EQ(endpoint.capacity(), 40U) << "an older attempt makes no room for a second probe";
  answer(1, 5ms);
  EXPECT_GT(endpoint.capacity(), 100U);
}

TEST_F(EndpointTest, AProbeNeedsAConnection) {
  answer(1, 10s);
  for (int i = 0; i < 256; ++i) endpoint.admit();
  for (int i = 0; i < 3; ++i) endpoint.failed(*endpoint.admit(), 30s);
  clock.advance(1s);
  EXPECT_EQ(endpoint.capacity(), 256U);
}

TEST_F(EndpointTest, ItsStateIsShownWithTheLastError) {
  EXPECT_EQ(endpoint.info().state, "idle");
  EXPECT_FALSE(endpoint.info().error_age);
  endpoint.failed(*endpoint.admit(), 1ms);
  EXPECT_EQ(endpoint.info().state, "unavailable");
  EXPECT_EQ(endpoint.info().mean, std::nullopt) << "a refused connection is no answer";
  answer(1, 5ms);
  EXPECT_EQ(endpoint.info().state, "ok");
  EXPECT_TRUE(endpoint.info().mean);
  const auto waiting = endpoint.admit();
  for (int i = 0; i < 3; ++i) endpoint.failed(*endpoint.admit(), 30s);
  endpoint.note_error("connecting: Connection refused");
  clock.advance(400ms);
  const EndpointInfo paused = endpoint.info();
  EXPECT_EQ(paused.endpoint, "http://shop:80");
  EXPECT_EQ(paused.state, "paused");
  EXPECT_EQ(paused.in_flight, 1U) << "three of four have ended";
  EXPECT_EQ(paused.limit, 256U);
  EXPECT_EQ(paused.pause_left, 600ms);
  EXPECT_EQ(paused.last_error, "connecting: Connection refused");
  EXPECT_EQ(paused.error_age, 400ms);
  clock.advance(1s);
  EXPECT_EQ(endpoint.info().state, "trying");
  endpoint.abandoned(*waiting);
  EXPECT_EQ(endpoint.info().in_flight, 0U);
}

}  // namespace
}  // namespace tocsin

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

TEST_F(EndpointTest, WhereAnswersAreQuickAsManyWaitAsAreOnTheirWay) {
  EXPECT_EQ(endpoint.capacity(), 128U) << "nothing is known of it yet";
  answer(1, 5ms);
  EXPECT_EQ(endpoint.capacity(), 512U);
  EXPECT_NEAR(endpoint.starts_per_s(), 51'200, 1);
}

TEST_F(EndpointTest, WhereAnswersAreSlowNoneWaits) {
  answer(1, 10s);
  EXPECT_EQ(endpoint.capacity(), 256U);
  EXPECT_NEAR(endpoint.starts_per_s(), 25.6, 0.1);
}

TEST_F(EndpointTest, InBetweenAsManyWaitAsStartInTime) {
  answer(1, 400ms);
  EXPECT_EQ(endpoint.capacity(), 256U + 64U);
}

TEST_F(EndpointTest, WhoWaitedInVainIsFollowedByNoneUntilAnswersAreQuickAgain) {
  answer(50, 5ms);
  endpoint.waited_in_vain();
  EXPECT_EQ(endpoint.capacity(), 256U);
  answer(50, 5ms);
  EXPECT_EQ(endpoint.capacity(), 512U);
}

TEST_F(EndpointTest, AnAttemptWithoutAnAnswerTellsHowLongItTook) {
  answer(1, 5ms);
  for (int i = 0; i < 2; ++i) endpoint.failed(*endpoint.admit(), 30s);
  EXPECT_EQ(endpoint.capacity(), 256U);
  endpoint.failed(*endpoint.admit(), 30s);
  EXPECT_EQ(endpoint.capacity(), 0U) << "its breaker is open";
}

}  // namespace
}  // namespace tocsin

#include "core/retry_policy.h"

#include <gtest/gtest.h>

#include <climits>
#include <cmath>
#include <limits>

namespace tocsin {
namespace {

using namespace std::chrono_literals;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Attempt numbers from the first to the last that an int holds.
std::vector<int> attempts() {
  std::vector<int> all;
  for (int n = 1; n <= 2000; ++n) all.push_back(n);
  for (std::int64_t n = 2048; n <= INT_MAX; n *= 2) all.push_back(static_cast<int>(n));
  all.insert(all.end(), {INT_MAX - 1, INT_MAX});
  return all;
}

Backoff exponential(Duration base, double factor, Duration max, double jitter) {
  return {base, factor, max, jitter, {}};
}

TEST(Backoff, DoublesUpToItsMaximum) {
  Random random(1);
  const Backoff policy = exponential(1s, 2, 60s, 0);
  const std::vector<Duration> wanted{1s, 2s, 4s, 8s, 16s, 32s, 60s, 60s, 60s};
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_EQ(backoff_delay(policy, static_cast<int>(i) + 1, random), wanted[i]);
  }
}

TEST(Backoff, StaysWithinItsJitterForEveryAttempt) {
  Random random(2);
  for (const double jitter : {0.0, 0.2, 1.0}) {
    const Backoff policy = exponential(250ms, 1.7, 1h, jitter);
    for (const int attempt : attempts()) {
      const double plain = std::min(250e3 * std::pow(1.7, attempt - 1), 3600e6);
      const auto delay = static_cast<double>(backoff_delay(policy, attempt, random).count());
      ASSERT_GE(delay, std::floor(plain * (1 - jitter))) << "attempt " << attempt;
      ASSERT_LE(delay, plain * (1 + jitter) + 1) << "attempt " << attempt;
    }
  }
}

TEST(Backoff, JitterReachesBothSides) {
  Random random(3);
  const Backoff policy = exponential(1s, 2, 1h, 0.2);
  Duration shortest = 1h, longest = 0s;
  for (int i = 0; i < 2000; ++i) {
    const Duration delay = backoff_delay(policy, 1, random);
    shortest = std::min(shortest, delay);
    longest = std::max(longest, delay);
  }
  EXPECT_LT(shortest, 810ms);
  EXPECT_GT(longest, 1190ms);
}

TEST(Backoff, AListGivesItsDelaysAndRepeatsTheLast) {
  Random random(4);
  Backoff policy;
  policy.delays = {1s, 5s, 30s};
  EXPECT_EQ(backoff_delay(policy, 1, random), 1s);
  EXPECT_EQ(backoff_delay(policy, 2, random), 5s);
  EXPECT_EQ(backoff_delay(policy, 3, random), 30s);
  for (const int attempt : attempts()) {
    ASSERT_EQ(backoff_delay(policy, std::max(attempt, 3), random), 30s);
  }
}

TEST(Backoff, AttemptNumbersBelowOneCountAsTheFirst) {
  Random random(5);
  for (const int attempt : {INT_MIN, -1, 0}) {
    EXPECT_EQ(backoff_delay(exponential(1s, 2, 1h, 0), attempt, random), 1s);
  }
}

TEST(Backoff, AnyPolicyGivesADelayBetweenZeroAndTheLongest) {
  const std::vector<double> factors{0, 0.5, 1, 2, 1e300, -2, kInfinity, -kInfinity, kNan};
  const std::vector<double> jitters{0, 0.2, 1, 50, -1, kInfinity, kNan};
  const std::vector<Duration> lengths{0us, 1us, 1s, kLongestBackoff, Duration::max(), Duration::min(), -1s};
  Random random(6);
  for (const double factor : factors) {
    for (const double jitter : jitters) {
      for (const Duration base : lengths) {
        for (const Duration max : lengths) {
          for (const int attempt : {1, 2, 17, 1000, 100'000, INT_MAX}) {
            const Duration delay = backoff_delay(exponential(base, factor, max, jitter), attempt, random);
            ASSERT_GE(delay, 0us);
            ASSERT_LE(delay, kLongestBackoff);
          }
        }
      }
    }
  }
  for (const Duration length : lengths) {
    Backoff policy;
    policy.delays = {length};
    const Duration delay = backoff_delay(policy, 1, random);
    EXPECT_GE(delay, 0us);
    EXPECT_LE(delay, kLongestBackoff);
  }
}

TEST(Backoff, GrowthThatIsNoNumberEndsAtTheMaximumOfThePolicy) {
  Random random(7);
  EXPECT_EQ(backoff_delay(exponential(0s, 10, 1h, 0), 1000, random), 1h) << "zero times infinity";
  EXPECT_EQ(backoff_delay(exponential(1s, kNan, 1h, 0), 2, random), 1h);
  EXPECT_EQ(backoff_delay(exponential(1s, kInfinity, 1h, 0), 2, random), 1h);
}

}  // namespace
}  // namespace tocsin

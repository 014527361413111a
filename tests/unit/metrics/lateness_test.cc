#include "metrics/lateness.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace tocsin {
namespace {

using namespace std::chrono_literals;

constexpr MonoTime kNow{1h};

void expect_near(double got_ms, std::int64_t wanted_us, const char* what) {
  const double wanted_ms = static_cast<double>(wanted_us) / 1000;
  EXPECT_NEAR(got_ms, wanted_ms, wanted_ms * 0.07 + 0.001) << what;
}

TEST(LatenessWindow, IsEmptyAtFirst) {
  const LatencySummary none = LatenessWindow().summary(kNow);
  EXPECT_EQ(none.n, 0U);
  EXPECT_EQ(none.p99, 0);
  EXPECT_EQ(none.max, 0);
}

TEST(LatenessWindow, QuantilesAreRightWithinSevenPerCentForAnyShape) {
  std::mt19937_64 random(3);
  for (const double spread : {0.1, 1.0, 3.0}) {
    std::lognormal_distribution<double> shape(std::log(2500), spread);
    LatenessWindow window;
    std::vector<std::int64_t> all;
    for (int i = 0; i < 50'000; ++i) {
      all.push_back(static_cast<std::int64_t>(shape(random)));
      window.record(Duration(all.back()), kNow);
    }
    std::ranges::sort(all);
    const LatencySummary summary = window.summary(kNow);
    EXPECT_EQ(summary.n, all.size());
    expect_near(summary.p50, all[all.size() / 2], "p50");
    expect_near(summary.p90, all[all.size() * 90 / 100], "p90");
    expect_near(summary.p99, all[all.size() * 99 / 100], "p99");
    EXPECT_EQ(summary.max, static_cast<double>(all.back()) / 1000) << "the largest is exact";
  }
}

TEST(LatenessWindow, TakesEveryLengthThereIs) {
  for (const Duration lateness : {Duration::min(), Duration(-5), Duration(0), Duration(1), Duration(15), Duration(16),
                                  Duration(17), Duration::max()}) {
    LatenessWindow window;
    window.record(lateness, kNow);
    const LatencySummary summary = window.summary(kNow);
    EXPECT_EQ(summary.n, 1U);
    EXPECT_GE(summary.p50, 0);
    EXPECT_LE(summary.p50, summary.max);
    expect_near(summary.p99, std::max<std::int64_t>(0, lateness.count()), "the only one");
  }
}

TEST(LatenessWindow, ForgetsAfterFiveMinutes) {
  LatenessWindow window;
  window.record(9s, kNow);
  window.record(1ms, kNow + 4min);
  EXPECT_EQ(window.summary(kNow + 4min).n, 2U);
  EXPECT_EQ(window.summary(kNow + 4min).max, 9000);
  EXPECT_EQ(window.summary(kNow + 5min).n, 1U);
  EXPECT_EQ(window.summary(kNow + 5min).max, 1);
  EXPECT_EQ(window.summary(kNow + 10min).n, 0U);
}

TEST(LatenessWindow, ReusesTheSpaceOfForgottenMinutes) {
  LatenessWindow window;
  window.record(9s, kNow);
  window.record(1ms, kNow + 5min);  // the same slice
  EXPECT_EQ(window.summary(kNow + 5min).n, 1U);
}

}  // namespace
}  // namespace tocsin

#include "metrics/metrics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "support/manual_clock.h"

namespace tocsin {
namespace {

using namespace std::chrono_literals;

constexpr int kManyTypes = 300;

// Types 1 to 300, each with a target of 100 ms for 9 starts in 10.
std::shared_ptr<const TypeCatalog> many_types() {
  std::vector<BizType> types;
  for (int i = 1; i <= kManyTypes; ++i) {
    BizType type;
    type.type_id = i;
    type.name = "type." + std::to_string(1000 + i);
    type.slo = Slo{100ms, 0.9};
    types.push_back(type);
  }
  return std::make_shared<TypeCatalog>(types);
}

class MetricsTest : public testing::Test {
 protected:
  MetricsTest() { metrics.set_catalog(many_types()); }
  std::vector<std::string> lines_that_start_with(const std::string& start) const {
    std::vector<std::string> found;
    std::istringstream text(metrics.text());
    for (std::string line; std::getline(text, line);)
      if (line.starts_with(start)) found.push_back(line);
    return found;
  }
  // Every type has a series of its own up to the cap, and one more has the rest: `of_other` is its line.
  void expect_capped(const std::string& name, const std::string& of_other) {
    const auto lines = lines_that_start_with(name + "{");
    EXPECT_EQ(lines.size(), TypeLabels::kMost + 1) << name;
    EXPECT_NE(std::ranges::find(lines, of_other), lines.end()) << of_other;
  }

  ManualClock clock;
  Metrics metrics{clock};
};

TEST_F(MetricsTest, LatenessAndMissesNameTwoHundredTypes) {
  for (int type = 1; type <= kManyTypes; ++type) metrics.started(type, 200ms);
  expect_capped("tocsin_lateness_seconds_count", "tocsin_lateness_seconds_count{biz_type=\"other\"} 100");
  expect_capped("tocsin_slo_missed_total", "tocsin_slo_missed_total{biz_type=\"other\"} 100");
}

TEST_F(MetricsTest, AttemptsNameTwoHundredTypes) {
  for (int type = 1; type <= kManyTypes; ++type) metrics.ended(type, EventSink::Ending::done, 1ms);
  expect_capped("tocsin_attempt_seconds_count",
                "tocsin_attempt_seconds_count{biz_type=\"other\",outcome=\"done\"} 100");
}

TEST_F(MetricsTest, OutcomesAreCountedForAttemptsOfAnyNode) {
  metrics.ended(1, EventSink::Ending::done, 1ms);
  metrics.ended_elsewhere(1, EventSink::Ending::done, 3);
  metrics.ended_elsewhere(2, EventSink::Ending::retry, 2);
  metrics.ended_elsewhere(3, EventSink::Ending::done, 0);
  const auto lines = lines_that_start_with("tocsin_outcomes_total{");
  EXPECT_EQ(std::set<std::string>(lines.begin(), lines.end()),
            (std::set<std::string>{"tocsin_outcomes_total{biz_type=\"type.1001\",outcome=\"done\"} 4",
                                   "tocsin_outcomes_total{biz_type=\"type.1002\",outcome=\"retry\"} 2"}));
  EXPECT_EQ(lines_that_start_with("tocsin_attempt_seconds_count{").size(), 1U) << "of what was timed";
}

TEST_F(MetricsTest, ATypeHasOneNameInAllFamilies) {
  for (int type = 1; type <= 150; ++type) metrics.started(type, 1ms);
  for (int type = kManyTypes; type > 150; --type) metrics.ended(type, EventSink::Ending::done, 1ms);
  metrics.started(151, 1ms);
  EXPECT_EQ(lines_that_start_with("tocsin_attempt_seconds_count{biz_type=\"type.1300\"").size(), 1U);
  EXPECT_TRUE(lines_that_start_with("tocsin_lateness_seconds_count{biz_type=\"type.1151\"").empty());
  EXPECT_EQ(lines_that_start_with("tocsin_lateness_seconds_count{biz_type=\"other\"").size(), 1U);
}

TEST_F(MetricsTest, AStartLaterThanTheTargetIsMissed) {
  metrics.started(1, 100ms);
  EXPECT_EQ(lines_that_start_with("tocsin_slo_missed_total").at(0), "tocsin_slo_missed_total{biz_type=\"type.1001\"} 0")
      << "so that its first miss is an increase";
  metrics.started(1, 100ms + Duration(1));
  metrics.started(1, -5ms);
  EXPECT_EQ(lines_that_start_with("tocsin_slo_missed_total").at(0),
            "tocsin_slo_missed_total{biz_type=\"type.1001\"} 1");
}

TEST_F(MetricsTest, ATypeWithoutATargetMissesNone) {
  BizType type;
  type.type_id = 1;
  type.name = "order.unpaid";
  metrics.set_catalog(std::make_shared<TypeCatalog>(std::vector<BizType>{type}));
  metrics.started(1, 1h);
  metrics.started(77, 1h);  // a type that this node does not know
  EXPECT_TRUE(lines_that_start_with("tocsin_slo_missed_total").empty());
  EXPECT_EQ(lines_that_start_with("tocsin_lateness_seconds_count{biz_type=\"77\"").size(), 1U);
}

TEST_F(MetricsTest, WaitsForADatabaseThreadAreObserved) {
  metrics.waited(2ms);
  EXPECT_EQ(lines_that_start_with("tocsin_pool_wait_seconds_count").at(0), "tocsin_pool_wait_seconds_count 1");
  EXPECT_EQ(lines_that_start_with("tocsin_pool_wait_seconds_bucket{le=\"0.001\"").at(0),
            "tocsin_pool_wait_seconds_bucket{le=\"0.001\"} 0");
  EXPECT_EQ(lines_that_start_with("tocsin_pool_wait_seconds_bucket{le=\"0.005\"").at(0),
            "tocsin_pool_wait_seconds_bucket{le=\"0.005\"} 1");
}

TEST_F(MetricsTest, WaitsBehindLocksDoNotLookLikeABusyPool) {
  metrics.waited_behind_locks(9s);
  EXPECT_EQ(lines_that_start_with("tocsin_pool_wait_seconds_count").at(0), "tocsin_pool_wait_seconds_count 0");
  EXPECT_EQ(lines_that_start_with("tocsin_lock_pool_wait_seconds_count").at(0),
            "tocsin_lock_pool_wait_seconds_count 1");
}

}  // namespace
}  // namespace tocsin

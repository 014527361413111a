// Gauges by type: how many series they have at most.
#include "node/gauges.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "node/permits.h"
#include "support/manual_clock.h"

namespace tocsin {
namespace {

using namespace std::chrono_literals;

constexpr int kGaugedTypes = 300;

// Of 300 types; `change` is applied to each.
TypeCatalog gauged_types(const std::function<void(BizType&)>& change) {
  std::vector<BizType> types;
  for (int i = 1; i <= kGaugedTypes; ++i) {
    BizType type;
    type.type_id = i;
    type.name = "type." + std::to_string(1000 + i);
    change(type);
    types.push_back(type);
  }
  return TypeCatalog(types);
}

double value_of(const std::vector<LabelledValue>& values, const std::map<std::string, std::string>& labels) {
  const auto found = std::ranges::find(values, labels, &LabelledValue::labels);
  if (found != values.end()) return found->value;
  ADD_FAILURE() << "there is no value of " << labels.begin()->second;
  return -1;
}

TEST(Gauges, JobsNameTwoHundredTypesAndAddUpTheRest) {
  std::vector<TypeState> states;
  for (int i = 0; i < kGaugedTypes; ++i)
    states.push_back({"type." + std::to_string(1000 + i), {1, 2, 3, 4, 5}, static_cast<double>(i)});
  const auto all = states_by_type({states, states});
  ASSERT_EQ(all.size(), TypeLabels::kMost + 1);
  EXPECT_EQ(all.at("type.1199").jobs[1], 4) << "of two databases";
  EXPECT_EQ(all.at("type.1199").oldest_due_s, 199);
  EXPECT_EQ(all.at("other").jobs[4], 2 * 100 * 5);
  EXPECT_EQ(all.at("other").oldest_due_s, 299);
}

TEST(Gauges, OnlyPausedTypesAreNamedAndTwoHundredAtMost) {
  const WallTime now{1h};
  const TypeCatalog few = gauged_types([](BizType& type) { type.paused = type.type_id == 7; });
  ASSERT_EQ(paused_types(few, now).size(), 1U);
  EXPECT_EQ(value_of(paused_types(few, now), {{"biz_type", "type.1007"}}), 1);
  const TypeCatalog all = gauged_types([](BizType& type) { type.paused = true; });
  EXPECT_EQ(paused_types(all, now).size(), TypeLabels::kMost + 1);
  EXPECT_EQ(value_of(paused_types(all, now), {{"biz_type", "other"}}), 100);
  const TypeCatalog over = gauged_types([&](BizType& type) {
    type.paused = true;
    type.paused_until = now;
  });
  EXPECT_TRUE(paused_types(over, now).empty());
}

TEST(Gauges, SharesOfTargetsNameTwoHundredTypes) {
  const TypeCatalog with = gauged_types([](BizType& type) { type.slo = Slo{1s, 0.9}; });
  EXPECT_EQ(target_shares(with).size(), TypeLabels::kMost);
  EXPECT_EQ(value_of(target_shares(with), {{"biz_type", "type.1001"}}), 0.9);
  EXPECT_TRUE(target_shares(gauged_types([](BizType&) {})).empty());
}

TEST(Gauges, PermitsNameTwoHundredTypesAndAddUpTheRest) {
  ManualClock clock;
  Metrics events(clock);
  Permits permits(PermitConfig{}, SessionConfig{"postgresql://nowhere.invalid/none"}, clock, events, {}, {});
  permits.set_catalog(std::make_shared<TypeCatalog>(gauged_types([](BizType& type) {
    type.handler_kind = "webhook";
    type.max_running = 3;
    type.rate_per_s = 5;
  })));
  const auto values = permits.values([](const FlowControl::Grant&) { return 1.0; });
  EXPECT_EQ(values.size(), 2 * (TypeLabels::kMost + 1));
  EXPECT_EQ(value_of(values, {{"biz_type", "other"}, {"limit", "max_running"}}), 100);
  EXPECT_EQ(value_of(values, {{"biz_type", "other"}, {"limit", "rate_per_s"}}), 100);
  EXPECT_EQ(value_of(values, {{"biz_type", "type.1001"}, {"limit", "max_running"}}), 1);
}

}  // namespace
}  // namespace tocsin

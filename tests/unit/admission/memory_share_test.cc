#include "admission/memory_share.h"

#include <gtest/gtest.h>

#include "unit/pipeline/stage_fixture.h"

namespace tocsin {
namespace {

const MemoryShare kShare(32'000, 5s);

TEST(MemoryShare, TypesWithoutALimitKeepAll) {
  EXPECT_FALSE(kShare.is_limited(biz_type(1), 30'000));
  EXPECT_FALSE(kShare.is_limited(biz_type(1, "noop"), 30'000));
}

TEST(MemoryShare, LimitsAndConsumersHoldATypeBackHoweverFewAreDue) {
  BizType limited = biz_type(1), paced = biz_type(2);
  limited.max_running = 1000;
  paced.rate_per_s = 1000;
  for (const BizType& type : {limited, paced, biz_type(3, "pull")}) EXPECT_TRUE(kShare.is_limited(type, 1));
}

TEST(MemoryShare, APoolHoldsBackJobsThatItCannotStartInTime) {
  BizType type = biz_type(1);
  type.pool = std::make_shared<TestPool>(10, /*per_s=*/20);
  EXPECT_FALSE(kShare.is_limited(type, 100));
  EXPECT_TRUE(kShare.is_limited(type, 101));
}

TEST(MemoryShare, AClosedPoolHoldsBackAll) {
  BizType type = biz_type(1);
  type.pool = pool_of(0);
  EXPECT_TRUE(kShare.is_limited(type, 1));
}

TEST(MemoryShare, HeldBackTypesKeepAQuarterInEqualParts) {
  EXPECT_EQ(kShare.jobs_per_type(1), 1001U) << "a 32nd and one";
  EXPECT_EQ(kShare.jobs_per_type(7), 1001U);
  EXPECT_EQ(kShare.jobs_per_type(80), 100U);
  EXPECT_EQ(kShare.jobs_per_type(0), 1001U);
}

}  // namespace
}  // namespace tocsin

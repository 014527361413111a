#include "admission/start_pools.h"

#include <gtest/gtest.h>

#include "unit/pipeline/stage_fixture.h"

namespace tocsin {
namespace {

BizType type_with(TypeId id, std::shared_ptr<const StartPool> pool) {
  BizType type = biz_type(id);
  type.pool = std::move(pool);
  return type;
}

TEST(StartPools, ATypeWithoutAPoolGetsAllItRequests) {
  StartPools pools;
  EXPECT_EQ(pools.take(biz_type(1), 5000, 1), 5000U);
}

TEST(StartPools, GiveNoSlotBeyondTheCapacity) {
  StartPools pools;
  const auto pool = pool_of(10);
  EXPECT_EQ(pools.take(type_with(1, pool), 7, 1), 7U);
  EXPECT_EQ(pools.take(type_with(2, pool), 7, 1), 3U);
  EXPECT_EQ(pools.used(*pool), 10U);
  pool->slots = 4;
  pools.release(1, 5);
  EXPECT_FALSE(pools.has_free(*pool)) << "as many run as it has now, and one more";
}

TEST(StartPools, GiveEqualPartsToTypesThatWait) {
  StartPools pools;
  const auto pool = pool_of(12);
  EXPECT_EQ(pools.take(type_with(1, pool), 12, /*waiting=*/3), 4U);
  EXPECT_EQ(pools.take(type_with(2, pool), 12, /*waiting=*/20), 1U) << "at least one";
}

TEST(StartPools, NotifyOnceOfAReleaseThatATypeWaitsFor) {
  StartPools pools;
  const auto pool = pool_of(2);
  pools.take(type_with(1, pool), 2, 1);
  EXPECT_FALSE(pools.release(1, 1)) << "no type got fewer than it wanted";
  pools.take(type_with(2, pool), 2, 1);
  EXPECT_TRUE(pools.release(1, 1));
  EXPECT_FALSE(pools.release(2, 1));
  pools.take(type_with(1, pool), 2, 1);
  EXPECT_FALSE(pools.has_free(*pool));
  EXPECT_TRUE(pools.release(1, 1)) << "has_free() waits, too";
}

TEST(StartPools, RunningAttemptsMoveToTheNewPoolOfTheirType) {
  StartPools pools;
  const auto before = pool_of(10), after = pool_of(10);
  pools.take(type_with(1, before), 6, 1);
  EXPECT_EQ(pools.take(type_with(1, after), 10, 1), 4U);
  EXPECT_EQ(pools.used(*before), 0U);
  EXPECT_EQ(pools.used(*after), 10U);
}

TEST(StartPools, AttemptsThatBeganWithoutAPoolReturnNoSlots) {
  StartPools pools;
  const auto pool = pool_of(10);
  pools.take(biz_type(1), 6, 1);
  pools.take(type_with(1, pool), 2, 1);
  pools.put_back(1, 6);
  EXPECT_EQ(pools.used(*pool), 0U);
}

}  // namespace
}  // namespace tocsin

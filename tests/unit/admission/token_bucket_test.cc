#include "admission/token_bucket.h"

#include <gtest/gtest.h>

namespace tocsin {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr MonoTime kStart{std::chrono::hours(1)};
constexpr MonoTime kNever = MonoTime::max();

TEST(TokenBucketTest, IsEmptyAtFirstAndFillsAtTheRate) {
  TokenBucket bucket;
  EXPECT_EQ(bucket.fill(20, kNever, kStart), 0);
  EXPECT_DOUBLE_EQ(bucket.fill(20, kNever, kStart + milliseconds(100)), 2);
  bucket.take(2);
  EXPECT_DOUBLE_EQ(bucket.fill(20, kNever, kStart + milliseconds(150)), 1);
}

TEST(TokenBucketTest, HoldsOneSecondOfTheRateAndAtLeastOneToken) {
  TokenBucket fast, slow;
  fast.fill(20, kNever, kStart), slow.fill(0.1, kNever, kStart);
  EXPECT_DOUBLE_EQ(fast.fill(20, kNever, kStart + seconds(60)), 20);
  EXPECT_DOUBLE_EQ(slow.fill(0.1, kNever, kStart + seconds(60)), 1);
}

TEST(TokenBucketTest, GetsNoTokensAfterTheEndOfTheGrant) {
  TokenBucket bucket;
  bucket.fill(20, kNever, kStart);
  EXPECT_DOUBLE_EQ(bucket.fill(20, kStart + milliseconds(200), kStart + milliseconds(900)), 4);
}

TEST(TokenBucketTest, TakesTokensBackOnceItHasBeenFilled) {
  TokenBucket bucket;
  bucket.put_back(5);
  EXPECT_EQ(bucket.fill(20, kNever, kStart), 0);
  bucket.fill(20, kNever, kStart + milliseconds(500));
  bucket.take(10);
  bucket.put_back(4);
  EXPECT_DOUBLE_EQ(bucket.fill(20, kNever, kStart + milliseconds(500)), 4);
}

TEST(TokenBucketTest, KnowsWhenTheNextTokenComes) {
  TokenBucket bucket;
  bucket.fill(20, kNever, kStart);
  bucket.fill(20, kNever, kStart + milliseconds(30));  // 0.6 of a token
  EXPECT_NEAR(static_cast<double>(bucket.until_next(20).count()), 20'000, 2);
  EXPECT_EQ(bucket.until_next(0), Duration::max());
}

TEST(TokenBucketTest, MeasuresUsePerSecondSinceTheLastTime) {
  TokenBucket bucket;
  bucket.fill(20, kNever, kStart);
  bucket.measure_use(kStart);
  bucket.fill(20, kNever, kStart + seconds(1));
  bucket.take(10);
  EXPECT_DOUBLE_EQ(bucket.measure_use(kStart + seconds(2)), 5);
  EXPECT_DOUBLE_EQ(bucket.measure_use(kStart + seconds(4)), 0);
  bucket.put_back(4);
  bucket.take(6);
  EXPECT_DOUBLE_EQ(bucket.measure_use(kStart + seconds(4)), 20) << "2 in a tenth of a second";
}

}  // namespace
}  // namespace tocsin

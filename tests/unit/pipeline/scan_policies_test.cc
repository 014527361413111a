// The policies of the scanner, each alone.
#include <gtest/gtest.h>

#include <vector>

#include "pipeline/adaptive_lookahead.h"
#include "pipeline/scan_overflow.h"
#include "pipeline/scan_schedule.h"
#include "pipeline/xmin_watermark.h"

namespace tocsin {
namespace {

using namespace std::chrono_literals;

constexpr WallTime kNow{1'767'225'600s};

// ---- XminWatermark

ScanReply scan_at(WallTime began, std::int64_t next_writer, std::int64_t oldest_writer) {
  ScanReply reply;
  reply.began = began;
  reply.next_writer = next_writer;
  reply.oldest_writer = oldest_writer;
  return reply;
}

TEST(XminWatermark, DoesNotAdvanceWhileATransactionIsOpen) {
  XminWatermark watermark;
  watermark.note(scan_at(kNow, 7, 7));
  EXPECT_EQ(watermark.reached(), kNow) << "no transaction is open";
  watermark.note(scan_at(kNow + 1s, 9, 7));
  watermark.note(scan_at(kNow + 2s, 12, 8));
  EXPECT_EQ(watermark.reached(), kNow);
  watermark.note(scan_at(kNow + 3s, 12, 9));
  EXPECT_EQ(watermark.reached(), kNow + 1s) << "all that the second scan could not see are over";
  watermark.note(scan_at(kNow + 4s, 12, 12));
  EXPECT_EQ(watermark.reached(), kNow + 4s);
}

TEST(XminWatermark, IsUnknownAfterAReset) {
  XminWatermark watermark;
  watermark.note(scan_at(kNow, 7, 7));
  watermark.reset();
  EXPECT_EQ(watermark.reached(), WallTime::min());
}

TEST(XminWatermark, ForgetsTheOldestScansOfAVeryLongTransaction) {
  XminWatermark watermark;
  for (int i = 0; i < 10'000; ++i) watermark.note(scan_at(kNow + i * 1s, 8 + i, 7));
  EXPECT_EQ(watermark.reached(), WallTime::min());
  watermark.note(scan_at(kNow + 10'000s, 20'000, 20'000));
  EXPECT_EQ(watermark.reached(), kNow + 10'000s);
}

// ---- AdaptiveLookahead

TEST(AdaptiveLookahead, FallsInOneStepAndRecoversInThirtyTwo) {
  AdaptiveLookahead lookahead(5s, 1s);
  EXPECT_FALSE(lookahead.adapt(0.8, 0.5, false));
  EXPECT_TRUE(lookahead.is_full());
  EXPECT_TRUE(lookahead.adapt(0.9, 0.5, false));
  EXPECT_EQ(lookahead.window_end(kNow), kNow + 1500ms);
  EXPECT_FALSE(lookahead.adapt(0.9, 0.5, false)) << "it cannot become shorter";
  EXPECT_FALSE(lookahead.adapt(0.6, 0.5, false));
  EXPECT_EQ(lookahead.window_end(kNow), kNow + 1500ms) << "memory is not ample yet";
  int steps = 0;
  for (; !lookahead.is_full(); ++steps) lookahead.adapt(0.4, 0.5, false);
  EXPECT_EQ(steps, 23);
}

TEST(AdaptiveLookahead, ARefusedHintShortensItAtAnyFillLevel) {
  AdaptiveLookahead lookahead(5s, 1s);
  EXPECT_TRUE(lookahead.adapt(0.1, 0.5, true));
}

TEST(AdaptiveLookahead, HintsAreRefusedOnlyBeyondAShortenedWindow) {
  AdaptiveLookahead lookahead(5s, 1s);
  EXPECT_EQ(lookahead.scan_horizon(kNow), WallTime::max());
  lookahead.adapt(0.9, 0.5, false);
  EXPECT_EQ(lookahead.scan_horizon(kNow), kNow + 1750ms);
}

// ---- ScanOverflow

class ScanOverflowTest : public ::testing::Test {
 protected:
  std::vector<Lane> promoted(WallTime due_by, TypeId meant = 1) {
    std::vector<Lane> lanes;
    overflow.promote(
        due_by, [&](TypeId type) { return type == meant; }, [&](Lane lane, WallTime) { lanes.push_back(lane); });
    return lanes;
  }
  ScanOverflow overflow;
};

TEST_F(ScanOverflowTest, PromotesAllLanesOfATypeWhoseTimeHasComeAtOnce) {
  overflow.note({0, 1}, kNow + 2s);
  overflow.note({0, 1}, kNow);
  overflow.note({0, 1}, kNow + 3s);
  overflow.note({1, 1}, kNow + 1s);
  overflow.note({2, 1}, kNow + 5s);
  overflow.note({0, 2}, kNow);
  EXPECT_EQ(overflow.first(), kNow);
  EXPECT_TRUE(promoted(kNow - 1ms).empty());
  EXPECT_EQ(promoted(kNow + 1s), (std::vector<Lane>{{0, 1}, {1, 1}}));
  EXPECT_EQ(overflow.first(), kNow) << "the other type waits";
  EXPECT_EQ(promoted(kNow + 1s, 2), (std::vector<Lane>{{0, 2}}));
  EXPECT_EQ(overflow.first(), kNow + 5s);
}

TEST_F(ScanOverflowTest, ForgetsALaneWhoseRowsAreInMemory) {
  overflow.note({0, 1}, kNow);
  overflow.forget_within({0, 1}, kNow - 2s, kNow);
  overflow.forget_within({0, 1}, kNow + 1ms, kNow + 2s);
  EXPECT_TRUE(overflow.contains({0, 1}));
  overflow.forget_within({0, 1}, kNow, kNow + 1s);
  EXPECT_FALSE(overflow.contains({0, 1}));
  EXPECT_TRUE(promoted(kNow + 1h).empty());
}

// ---- ScanSchedule

TEST(ScanSchedule, ManyRowsAreDividedIntoFourGroupsPerInterval) {
  ScanSchedule schedule(1s, 100);
  schedule.note_rows(100);
  EXPECT_EQ(schedule.end_scan(false), 250ms);
  ASSERT_TRUE(schedule.is_in_groups());
  std::vector<int> turns(8);
  for (int group = 0; group < 4; ++group) {
    for (std::size_t position = 0; position < turns.size(); ++position)
      turns[position] += schedule.is_turn_of(position);
    EXPECT_EQ(schedule.end_scan(false), 250ms) << group;
  }
  EXPECT_EQ(turns, std::vector<int>(8, 1)) << "each shard once";
  EXPECT_FALSE(schedule.is_in_groups()) << "few rows";
  EXPECT_EQ(schedule.intervals(), 2U);
}

TEST(ScanSchedule, RowsBeyondTheMemoryAreReadWithoutGroups) {
  ScanSchedule schedule(1s, 100);
  schedule.note_rows(1000);
  schedule.note_overfull();
  EXPECT_EQ(schedule.end_scan(false), 1s);
  EXPECT_FALSE(schedule.is_in_groups());
}

TEST(ScanSchedule, AnIdleCycleTakesTwoIntervals) {
  ScanSchedule schedule(1s, 100);
  EXPECT_EQ(schedule.end_scan(true), 2s);
  EXPECT_EQ(schedule.intervals(), 2U);
  schedule.note_rows(1);
  EXPECT_EQ(schedule.end_scan(true), 1s);
}

}  // namespace
}  // namespace tocsin

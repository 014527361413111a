#include "pipeline/scan_progress.h"

#include <gtest/gtest.h>

namespace tocsin {
namespace {

using namespace std::chrono_literals;

class ScanProgressTest : public ::testing::Test {
 protected:
  ScanProgress scans{/*interval=*/1s, /*lookahead=*/5s};
};

TEST_F(ScanProgressTest, HasNoAgeBeforeTheFirstCycleHasEnded) {
  EXPECT_FALSE(scans.age(MonoTime(1min)));
  EXPECT_EQ(scans.trouble(MonoTime(1min)), "");
}

TEST_F(ScanProgressTest, AgeCountsFromTheEndOfACycle) {
  scans.note_cycle(MonoTime(1s), MonoTime(2s));
  EXPECT_EQ(scans.age(MonoTime(5s)), 3s);
}

TEST_F(ScanProgressTest, ACycleOfMoreThanOneAndAHalfIntervalsIsTrouble) {
  scans.note_cycle(MonoTime(1s), MonoTime(2500ms));
  EXPECT_EQ(scans.trouble(MonoTime(3s)), "");
  scans.note_cycle(MonoTime(3s), MonoTime(5s));
  EXPECT_EQ(scans.trouble(MonoTime(5s)), "scans are behind: one takes 2000 ms where there is one every 1000 ms");
}

TEST_F(ScanProgressTest, NoCycleForLongerThanTheLookaheadIsTrouble) {
  scans.note_cycle(MonoTime(1s), MonoTime(2s));
  EXPECT_EQ(scans.trouble(MonoTime(7s)), "");
  EXPECT_EQ(scans.trouble(MonoTime(8s)), "scans are behind: the last one ended 6000 ms ago");
}

}  // namespace
}  // namespace tocsin

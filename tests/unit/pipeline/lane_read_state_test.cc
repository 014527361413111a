#include "pipeline/lane_read_state.h"

#include <gtest/gtest.h>

#include "unit/pipeline/lane_rows.h"

namespace tocsin {
namespace {

using namespace std::chrono_literals;

constexpr WallTime kFoundAt{1'767'225'600s};

TEST(LaneReadState, EndsWhenItsRowsAreGoneAndNoOlderSnapshotIsOpen) {
  LaneReadState life(kFoundAt);
  EXPECT_FALSE(life.may_be_forgotten(kFoundAt + 1h, kFoundAt + 1h)) << "nothing was read yet";
  life.begin_turn(/*reads_all=*/true);
  life.note_read(kFoundAt, rows_due({kFoundAt + 3s}));
  EXPECT_FALSE(life.may_be_forgotten(kFoundAt + 1h, kFoundAt + 1h)) << "the last read found a row";
  life.begin_turn(/*reads_all=*/true);
  life.note_read(kFoundAt + 4s, {});
  EXPECT_FALSE(life.may_be_forgotten(kFoundAt + 2s, kFoundAt + 1h)) << "its row is in memory";
  EXPECT_FALSE(life.may_be_forgotten(kFoundAt + 5s, kFoundAt)) << "a snapshot still sees the row";
  EXPECT_TRUE(life.may_be_forgotten(kFoundAt + 5s, kFoundAt + Duration(1)));
}

TEST(LaneReadState, LastsWhileAReadCoversOnlyPartOfTheLane) {
  LaneReadState life(kFoundAt);
  life.begin_turn(/*reads_all=*/false);
  life.note_read(kFoundAt, {});
  EXPECT_FALSE(life.may_be_forgotten(kFoundAt + 1h, kFoundAt + 1h));
}

TEST(LaneReadState, ANewLaneIsReadAtOnce) {
  LaneReadState life(kFoundAt);
  EXPECT_TRUE(life.is_read_at_once());
  life.begin_turn(/*reads_all=*/true);
  EXPECT_FALSE(life.is_read_at_once());
}

TEST(LaneReadState, RequestsToReadAtOnceHaveAPause) {
  LaneReadState life(kFoundAt);
  life.begin_turn(/*reads_all=*/true);
  EXPECT_TRUE(life.read_at_once(MonoTime(1s), 250ms));
  EXPECT_TRUE(life.is_read_at_once());
  life.begin_turn(/*reads_all=*/true);
  EXPECT_FALSE(life.read_at_once(MonoTime(1200ms), 250ms));
  EXPECT_FALSE(life.is_read_at_once());
  EXPECT_TRUE(life.read_at_once(MonoTime(1250ms), 250ms));
}

}  // namespace
}  // namespace tocsin

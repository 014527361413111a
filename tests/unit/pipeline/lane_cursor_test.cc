#include "pipeline/lane_cursor.h"

#include <gtest/gtest.h>

namespace tocsin {
namespace {

using namespace std::chrono_literals;

constexpr WallTime kBegin{1'767'225'600s};

LaneCursor::Rows rows_due(std::initializer_list<WallTime> times) {
  LaneCursor::Rows rows;
  for (const WallTime time : times) rows.push_back({{make_job_id(static_cast<JobId>(rows.size()) + 1, 0), 1, time}});
  return rows;
}

TEST(LaneCursor, LowWaterMarkStaysBelowLateCommitsAndTheOldestRow) {
  LaneCursor cursor(kBegin);
  cursor.read_overdue(WallTime::min(), kBegin, {}, kBegin - 5s, WallTime::min());
  EXPECT_EQ(cursor.low(), kBegin - 5s);
  cursor.read_overdue(cursor.low(), kBegin + 1min, rows_due({kBegin + 2s}), kBegin + 55s, WallTime::min());
  EXPECT_EQ(cursor.low(), kBegin + 2s - Duration(1));
}

TEST(LaneCursor, AReadThatBeginsBehindTheLowWaterMarkMovesNothing) {
  LaneCursor cursor(kBegin);
  cursor.read_overdue(WallTime::min(), kBegin, {}, kBegin - 5s, kBegin - 6s);
  cursor.read_overdue(kBegin - 1s, kBegin + 1min, {}, kBegin + 55s, kBegin + 54s);
  EXPECT_EQ(cursor.low(), kBegin - 5s);
  EXPECT_EQ(cursor.floor(), kBegin - 6s);
}

TEST(LaneCursor, ASweepReadsFromTheFloorAndAnAuditFromTheBeginning) {
  LaneCursor cursor(kBegin);
  cursor.read_overdue(WallTime::min(), kBegin, {}, kBegin - 5s, kBegin - 20s);
  EXPECT_EQ(cursor.floor(), kBegin - 20s);
  cursor.begin_sweep();
  EXPECT_EQ(cursor.low(), kBegin - 20s);
  EXPECT_EQ(cursor.window_at(), WallTime::min()) << "the window is read again, too";
  cursor.begin_audit();
  EXPECT_EQ(cursor.low(), WallTime::min());
}

TEST(LaneCursor, AnAuditCountsWhatLiesBeforeTheFloorOnce) {
  LaneCursor cursor(kBegin);
  cursor.read_overdue(WallTime::min(), kBegin, {}, kBegin - 5s, kBegin - 20s);
  cursor.begin_audit();
  const auto rows = rows_due({kBegin - 1min, kBegin - 10s});
  EXPECT_EQ(cursor.read_overdue(cursor.low(), kBegin, rows, kBegin - 5s, kBegin - 20s), 1);
  EXPECT_EQ(cursor.floor(), kBegin - 1min - Duration(1)) << "until it is gone, the floor stays before it";
  EXPECT_EQ(cursor.read_overdue(cursor.low(), kBegin, rows, kBegin - 5s, kBegin - 20s), 0);
}

// Rows that are too late to run are read apart, from the beginning of time, before the others.
TEST(LaneCursor, AnAuditOfSeveralReadsCountsWhatLiesBeforeTheFloorOnce) {
  LaneCursor cursor(kBegin);
  cursor.read_overdue(WallTime::min(), kBegin, {}, kBegin - 5s, kBegin - 20s);
  cursor.begin_audit();
  const WallTime edge = kBegin - 1h;
  EXPECT_EQ(cursor.read_overdue(cursor.low(), edge, {}, kBegin - 5s, kBegin - 20s), 0);
  const auto rows = rows_due({kBegin - 1min, kBegin - 10s});
  EXPECT_EQ(cursor.read_overdue(edge - Duration(1), kBegin, rows, kBegin - 5s, kBegin - 20s), 1);
  EXPECT_EQ(cursor.read_overdue(cursor.low(), kBegin, rows, kBegin - 5s, kBegin - 20s), 0);
}

TEST(LaneCursor, ARowThatComesBackMovesTheFloorBackAndIsNoFindingOfAnAudit) {
  LaneCursor cursor(kBegin);
  const auto read = [&](const LaneCursor::Rows& rows) {
    return cursor.read_overdue(cursor.low(), kBegin, rows, kBegin - 5s, kBegin - 20s);
  };
  read({});
  cursor.return_to(kBegin - 1min);
  EXPECT_EQ(cursor.low(), kBegin - 1min - Duration(1));
  EXPECT_EQ(cursor.floor(), cursor.low()) << "or a sweep would not find it";
  read({});
  cursor.begin_audit();
  cursor.return_to(kBegin - 1min);
  EXPECT_EQ(read(rows_due({kBegin - 1min})), 0);
}

TEST(LaneCursor, ExhaustedRowsAreReadOncePerSweepAndUntilTheyAreGone) {
  LaneCursor cursor(kBegin);
  EXPECT_FALSE(cursor.wants_exhausted());
  cursor.begin_sweep();
  ASSERT_TRUE(cursor.wants_exhausted());
  EXPECT_EQ(cursor.exhausted_from(), WallTime::min());
  auto rows = rows_due({kBegin - 4s, kBegin - 3s, kBegin - 2s});
  rows[1].is_exhausted = rows[2].is_exhausted = true;
  cursor.read_exhausted(kBegin, rows, /*is_page_full=*/false);
  EXPECT_FALSE(cursor.wants_exhausted());
  EXPECT_EQ(cursor.exhausted_from(), kBegin - 3s);
  EXPECT_EQ(cursor.exhausted_from_id(), 0) << "it is among the rows read next";
  cursor.begin_sweep();
  cursor.read_exhausted(kBegin, {}, /*is_page_full=*/false);
  EXPECT_EQ(cursor.exhausted_from(), kBegin) << "no row before it is looked at twice";
}

TEST(LaneCursor, ALongSearchForExhaustedRowsContinuesPageByPage) {
  LaneCursor cursor(kBegin);
  cursor.begin_sweep();
  auto rows = rows_due({kBegin - 9s, kBegin - 8s});
  rows[0].is_exhausted = true;
  cursor.read_exhausted(kBegin, rows, /*is_page_full=*/true);
  EXPECT_TRUE(cursor.wants_exhausted()) << "there are more";
  cursor.begin_sweep();
  cursor.begin_audit();
  EXPECT_EQ(cursor.exhausted_from(), kBegin - 8s) << "or it would never come to its end";
  EXPECT_EQ(cursor.exhausted_from_id(), rows[1].candidate.job_id);
  cursor.read_exhausted(kBegin, rows_due({kBegin - 7s}), /*is_page_full=*/false);
  EXPECT_FALSE(cursor.wants_exhausted());
  EXPECT_EQ(cursor.exhausted_from(), kBegin - 9s) << "it may not be dead yet";
  cursor.begin_audit();
  EXPECT_EQ(cursor.exhausted_from(), WallTime::min());
}

TEST(LaneCursor, SleepsWhenItsRowsAreGoneAndNoOlderSnapshotIsOpen) {
  LaneCursor cursor(kBegin);
  EXPECT_FALSE(cursor.may_be_forgotten(kBegin + 1h, kBegin + 1h)) << "it has read nothing yet";
  cursor.begin_turn(/*reads_all=*/true);
  cursor.note_read(kBegin, rows_due({kBegin + 3s}));
  EXPECT_FALSE(cursor.may_be_forgotten(kBegin + 1h, kBegin + 1h)) << "its last read found a row";
  cursor.begin_turn(/*reads_all=*/false);
  cursor.note_read(kBegin + 4s, {});
  EXPECT_FALSE(cursor.may_be_forgotten(kBegin + 1h, kBegin + 1h)) << "not all was read";
  cursor.begin_turn(/*reads_all=*/true);
  cursor.note_read(kBegin + 4s, {});
  EXPECT_FALSE(cursor.may_be_forgotten(kBegin + 2s, kBegin + 1h)) << "its row is in memory";
  EXPECT_FALSE(cursor.may_be_forgotten(kBegin + 5s, kBegin)) << "a snapshot still sees the row";
  EXPECT_TRUE(cursor.may_be_forgotten(kBegin + 5s, kBegin + Duration(1)));
}

}  // namespace
}  // namespace tocsin

#include "pipeline/lane_cursor.h"

#include <gtest/gtest.h>

#include "unit/pipeline/lane_rows.h"

namespace tocsin {
namespace {

using namespace std::chrono_literals;

constexpr WallTime kBegin{1'767'225'600s};

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

TEST(LaneCursor, AnAuditCountsRowsBeforeTheFloorOnce) {
  LaneCursor cursor(kBegin);
  cursor.read_overdue(WallTime::min(), kBegin, {}, kBegin - 5s, kBegin - 20s);
  cursor.begin_audit();
  const auto rows = rows_due({kBegin - 1min, kBegin - 10s});
  EXPECT_EQ(cursor.read_overdue(cursor.low(), kBegin, rows, kBegin - 5s, kBegin - 20s), 1);
  EXPECT_EQ(cursor.floor(), kBegin - 1min - Duration(1)) << "until it is gone, the floor stays before it";
  EXPECT_EQ(cursor.read_overdue(cursor.low(), kBegin, rows, kBegin - 5s, kBegin - 20s), 0);
}

// Rows that are too late to run are read apart, from the beginning of time, before the others.
TEST(LaneCursor, AnAuditOfSeveralReadsCountsRowsBeforeTheFloorOnce) {
  LaneCursor cursor(kBegin);
  cursor.read_overdue(WallTime::min(), kBegin, {}, kBegin - 5s, kBegin - 20s);
  cursor.begin_audit();
  const WallTime edge = kBegin - 1h;
  EXPECT_EQ(cursor.read_overdue(cursor.low(), edge, {}, kBegin - 5s, kBegin - 20s), 0);
  const auto rows = rows_due({kBegin - 1min, kBegin - 10s});
  EXPECT_EQ(cursor.read_overdue(edge - Duration(1), kBegin, rows, kBegin - 5s, kBegin - 20s), 1);
  EXPECT_EQ(cursor.read_overdue(cursor.low(), kBegin, rows, kBegin - 5s, kBegin - 20s), 0);
}

TEST(LaneCursor, AReleasedRowMovesTheFloorBackAndNoAuditCountsIt) {
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

TEST(LaneCursor, SweepsAndAuditsSearchForExhaustedRows) {
  LaneCursor cursor(kBegin);
  EXPECT_FALSE(cursor.exhausted().is_wanted());
  cursor.begin_sweep();
  EXPECT_TRUE(cursor.exhausted().is_wanted());
  cursor.exhausted().note_page(kBegin, {}, /*is_page_full=*/false);
  cursor.begin_sweep();
  EXPECT_EQ(cursor.exhausted().from(), kBegin) << "where the last search ended";
  cursor.begin_audit();
  EXPECT_EQ(cursor.exhausted().from(), WallTime::min());
}

}  // namespace
}  // namespace tocsin

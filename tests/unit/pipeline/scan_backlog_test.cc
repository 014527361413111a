// What scans read of lanes that are backlog: rows that are due before the first one that claims take.
#include "unit/pipeline/scanner_fixture.h"

namespace tocsin {
namespace {

TEST_F(ScannerTest, ReadsAFewRowsOfALaneInTheBacklogOncePerSweep) {
  keeps_awake = true;
  config.sweep_interval = 10s;
  shared().due.push_backlog({{0, 1}, kStart - 1h});
  int reads = 0;
  while (db_now() < kStart + 35s) {
    scan();
    EXPECT_TRUE(asked_window().empty());
    const auto overdue = asked_overdue();
    reads += static_cast<int>(std::ranges::count_if(overdue, [](const auto& range) { return range.limit <= 8; }));
  }
  EXPECT_GE(reads, 3);
  EXPECT_LE(reads, 5) << "at first, and with each sweep";
}

// It was created with a deadline ahead, and committed when its lane was backlog already: claims begin behind it.
TEST_F(ScannerTest, ASweepFindsARowThatIsDueBeforeTheBacklog) {
  BizType drops = biz_type(2);
  drops.drop_older_than = 2h;
  config.overdue_page = 8;
  config.sweep_interval = 10s;
  set_types({biz_type(1), drops});
  for (const TypeId type : {1, 2}) {
    for (int i = 0; i < 40; ++i) insert(kStart - 1min + i * 1ms, type);
  }
  scan_until(kStart + 11s);
  for (const TypeId type : {1, 2}) {
    ASSERT_EQ(backlog_begin({0, type}), kStart - 1min - 1us);
    insert(kStart - 1h, type);
  }
  scan_until(kStart + 33s);
  EXPECT_EQ(backlog_begin({0, 1}), kStart - 1h - 1us) << "not earlier: claims would read dead index entries";
  EXPECT_EQ(backlog_begin({0, 2}), kStart - 1h - 1us);
  EXPECT_TRUE(found().empty());
}

TEST_F(ScannerTest, ASweepFindsARowThatIsDueBeforeTheCatchUpBacklog) {
  keeps_awake = true;
  config.sweep_interval = 10s;
  BizType slow = biz_type(1);
  slow.catch_up_rate_per_s = 1;
  set_types({slow});
  scan_until(kStart + 12s);
  insert(kStart + 13s);
  scan_until(kStart + 20s);
  const WallTime begin = backlog_begin({0, 1}, Pace::catch_up);
  ASSERT_GT(begin, kStart + 2s);
  insert(kStart + 2s);
  scan_until(kStart + 42s);
  EXPECT_EQ(backlog_begin({0, 1}, Pace::catch_up), kStart + 2s - 1us);
}

TEST_F(ScannerTest, AnAuditFindsAndCountsARowBeforeTheFloorOfABacklog) {
  keeps_awake = true;
  oldest_writer = next_writer = 7;
  config.overdue_page = 8;
  config.sweep_interval = 10s;
  config.audit_interval = 40s;
  scan_until(kStart + 25s);
  for (int i = 0; i < 40; ++i) insert(kStart + 24s + i * 1ms);
  scan_until(kStart + 27s);
  const WallTime begin = backlog_begin({0, 1});
  insert(kStart + 1s);
  scan_until(kStart + 39s);
  EXPECT_EQ(backlog_begin({0, 1}), begin) << "no sweep looks there";
  scan_until(kStart + 82s);
  EXPECT_EQ(backlog_begin({0, 1}), kStart + 1s - 1us);
  EXPECT_EQ(events[Counter::audit_found], 1);
}

// Its claim was released, and memory has dropped it since.
TEST_F(ScannerTest, ARowThatCameBackIsFoundBeforeTheBacklog) {
  config.overdue_page = 8;
  for (int i = 0; i < 40; ++i) insert(kStart - 1min + i * 1ms);
  scan_until(kStart + 3s);
  insert(kStart - 1h);
  shared().returned.try_push({{0, 1}, kStart - 1h});
  scan_until(kStart + 5s);
  EXPECT_EQ(backlog_begin({0, 1}), kStart - 1h - 1us);
}

}  // namespace
}  // namespace tocsin

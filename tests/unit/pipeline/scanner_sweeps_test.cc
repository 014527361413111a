// Sweeps and audits: reads that find rows which scans have passed.
#include <gtest/gtest.h>

#include <algorithm>

#include "pipeline/scanner.h"
#include "unit/pipeline/scanner_fixture.h"

namespace tocsin {
namespace {

TEST_F(ScannerTest, ASweepStartsAtTheXminWatermark) {
  keeps_awake = true;
  oldest_writer = next_writer = 7;  // no transaction is open
  scan_until_it_rests();
  for (int i = 0; i < 100; ++i) {
    scan();
    for (const ScanRange& range : asked_overdue())
      EXPECT_GE(range.after, asked_at - config.sweep_interval - config.late_commit_margin - 5s);
  }
}

TEST_F(ScannerTest, ASweepGoesBackAsFarAsTheOldestWriter) {
  keeps_awake = true;
  oldest_writer = next_writer = 7;
  scan_until_it_rests();
  const WallTime opened = db_now();  // writer 7 opens and stays open: scans only know that 8 is the next
  next_writer = 8;
  WallTime earliest = WallTime::max();
  for (int i = 0; i < 60; ++i) {
    scan();
    next_writer = 9 + i;
    for (const ScanRange& range : asked_overdue()) earliest = std::min(earliest, range.after);
  }
  EXPECT_LE(earliest, opened);
  EXPECT_GT(earliest, opened - config.late_commit_margin - 5s);
}

TEST_F(ScannerTest, AScanTakesATransactionIdOnceASecond) {
  oldest_writer = next_writer = 7;
  int marks = 0;
  for (int i = 0; i < 40; ++i) {
    scanner().request_scan();
    scanner().step(now);
    marks += store.last_mark == WriterMark::set;
    now += 100ms;
  }
  EXPECT_EQ(marks, 4);
}

// A writer whose clock was read long before its transaction had an id: no scan's xmin tells of it.
TEST_F(ScannerTest, AnAuditFindsAndCountsRowsBeforeTheFloor) {
  keeps_awake = true;
  oldest_writer = next_writer = 7;
  config.sweep_interval = 10s;
  config.audit_interval = 40s;
  scan_until(kStart + 25s);
  const JobId late = insert(kStart + 1s);
  scan_until(kStart + 39s);
  EXPECT_EQ(found(), std::vector<JobId>{}) << "no sweep looks there";
  scan_until(kStart + 82s);
  EXPECT_EQ(found(), std::vector<JobId>{late});
  EXPECT_EQ(events[Counter::audit_found], 1);
  table.clear();
  scan_until(kStart + 165s);
  EXPECT_EQ(events[Counter::audit_found], 1) << "only what lies there";
}

// The audit reads between the commit of a release and the finisher's report of it.
TEST_F(ScannerTest, AnAuditCountsNoRowWhoseReleaseIsNotReported) {
  keeps_awake = true;
  oldest_writer = next_writer = 7;
  config.sweep_interval = 10s;
  config.audit_interval = 40s;
  scan_until(kStart + 39s);
  const auto release = [this] { insert(kStart + 1s); };
  shared().unreported.note_write();
  release();
  scan_until(kStart + 82s);
  EXPECT_EQ(found().size(), 1U);
  EXPECT_EQ(events[Counter::audit_found], 0);
  shared().unreported.note_reported();
  table.clear();
  scan_until(kStart + 105s);
  release();
  scan_until(kStart + 165s);
  EXPECT_EQ(events[Counter::audit_found], 1) << "no release explains this one";
}

// Its previous owner released a claim with the time that the row had before.
TEST_F(ScannerTest, ASweepFindsAnOldRowThatCameWhileAShardWasGained) {
  keeps_awake = true;
  oldest_writer = next_writer = 7;
  config.sweep_interval = 10s;
  config.handover_time = 8s;
  scan_until(kStart + 7s);
  const JobId released = insert(kStart - 20s);
  scan_until(kStart + 21s);
  EXPECT_EQ(found(), std::vector<JobId>{released});
  table.clear();
  scan_until(kStart + 31s);
  insert(kStart - 20s);
  scan_until(kStart + 52s);
  EXPECT_EQ(found(), std::vector<JobId>{}) << "the floors of a settled shard hold";
  EXPECT_EQ(events[Counter::audit_found], 0);
}

// Between two scans: the list of shards is the same as before.
TEST_F(ScannerTest, AShardThatWasLostAndGainedAgainIsReadFromTheBeginning) {
  keeps_awake = true;
  oldest_writer = next_writer = 7;
  config.handover_time = 8s;
  scan_until(kStart + 21s);
  insert(kStart - 20s);
  scan_until(kStart + 23s);
  EXPECT_EQ(found(), std::vector<JobId>{});
  const std::vector<Shard> all = *shared().shards.get();
  shared().gained.note(all, {});
  shared().gained.note({}, all);
  scan_until(kStart + 25s);
  EXPECT_EQ(found().size(), 1U);
}

TEST_F(ScannerTest, AnAuditCountsNothingThatASweepWouldHaveFound) {
  keeps_awake = true;
  oldest_writer = 7;
  next_writer = 8;  // a writer has been open from the beginning
  config.audit_interval = 20s;
  scan_until(kStart + 15s);
  insert(kStart + 1s);
  scan_until(kStart + 65s);
  EXPECT_EQ(found().size(), 1U);
  EXPECT_EQ(events[Counter::audit_found], 0);
}

}  // namespace
}  // namespace tocsin

// How scans are spread over time. Where much is read, it is read in scan groups: no scan takes long, and no lane waits
// for longer. Where no other node works and nothing is found, scans are rare. Where more is found than memory holds,
// all lanes get their part, and their overflow is promoted together.
#include <map>
#include <set>

#include "unit/pipeline/scanner_fixture.h"

namespace tocsin {
namespace {

TEST_F(ScannerTest, ManyRowsAreReadInGroupsAndNoLaneAfterAnInterval) {
  keeps_awake = true;
  config.many_rows = 16;
  shards = {0, 1, 2, 3, 4, 5, 6, 7};
  std::map<Shard, MonoTime> read;
  std::map<std::size_t, int> scans_of_so_many_lanes;
  std::size_t inserted = 0, seen = 0;
  scan_until_it_rests();
  for (int i = 0; i < 200; ++i) {
    const bool is_busy = i >= 20 && i < 120;
    for (const Shard shard : shards)
      if (is_busy) insert(db_now() + config.lookahead + 500ms, 1, shard);
    inserted += is_busy ? shards.size() : 0;
    std::erase_if(table, [&](const Row& row) {
      const bool has_fired = row.candidate.fire_at < db_now();
      if (has_fired) shared().known.remove(row.candidate.job_id);
      return has_fired;
    });
    scan();
    seen += found().size();
    std::set<Shard> lanes;
    for (const ScanRange& range : asked) lanes.insert(range.lane.shard);
    ++scans_of_so_many_lanes[lanes.size()];
    for (const Shard shard : lanes) {
      if (read.contains(shard)) {
        EXPECT_LE(now - read[shard], config.scan_interval + 5 * round_trip) << shard << ", " << i;
      }
      read[shard] = now;
    }
  }
  EXPECT_EQ(read.size(), shards.size());
  EXPECT_GE(scans_of_so_many_lanes[2], 90) << "a quarter of eight";
  EXPECT_GE(scans_of_so_many_lanes[8], 70);
  EXPECT_EQ(scans_of_so_many_lanes.size(), 2U);
  EXPECT_EQ(seen, inserted);
}

// A type may have 48 jobs in memory, and 128 are due at one instant, 6.3 seconds from the start.
class ScannerInAStorm : public ScannerTest {
 protected:
  void SetUp() override {
    ScannerTest::SetUp();
    config.capacity = 64;
    config.window_page = 4;
    config.overdue_page = 4;
    config.claim_batch = 8;
    shards = {0, 1, 2, 3, 4, 5, 6, 7};
    scanner();
    for (const Shard shard : shards)
      for (int i = 0; i < 16; ++i) insert(kDue, 1, shard);
    scan_until(kDue);
    in_memory = shared().candidates.pop_some(1'000'000);
    shared().due.push(in_memory);
  }

  // The claimers take so many of what memory has.
  void fire(std::size_t n) {
    const auto catalog = shared().catalog.get();
    const DueBatch batch = shared().admission.next_batch(n, {*catalog, db_now(), now});
    for (const Candidate& job : batch.jobs)
      std::erase_if(table, [&](const Row& row) { return row.candidate.job_id == job.job_id; });
    shared().known.remove(batch.jobs);
    shared().limiter.release(1, batch.jobs.size());
  }
  std::vector<Shard> backlog() {
    std::vector<Shard> lanes;
    std::ranges::copy_if(shards, std::back_inserter(lanes), [&](Shard shard) {
      return shared().due.has_backlog({shard, 1});
    });
    return lanes;
  }

  static constexpr WallTime kDue = kStart + 6s + 300ms;
  std::vector<Candidate> in_memory;
};

TEST_F(ScannerInAStorm, EveryLaneGetsItsShareOfTheMemory) {
  ASSERT_EQ(in_memory.size(), 48U);
  std::map<Shard, int> held;
  for (const Candidate& job : in_memory) ++held[job.lane().shard];
  for (const Shard shard : shards) EXPECT_GE(held[shard], 4) << shard;
}

TEST_F(ScannerInAStorm, OverflowIsPromotedTogetherWhenMemoryIsEmpty) {
  scan_until(kDue + 200ms);
  EXPECT_EQ(backlog(), std::vector<Shard>{}) << "the claimers have enough to do";
  fire(in_memory.size() - config.claim_batch - 1);
  scan_until(db_now() + 20ms);
  EXPECT_EQ(backlog(), std::vector<Shard>{}) << "still";
  fire(1);
  scan_until(db_now() + 20ms);
  EXPECT_EQ(backlog(), shards);
  EXPECT_LT(db_now(), kDue + 300ms) << "no job waited for a scan";
}

TEST_F(ScannerInAStorm, OverflowIsPromotedTogetherWhenOneOfItsLanesIsOverdue) {
  // Many of one lane are gone, so that a page of its overdue rows shows strangers.
  std::vector<Candidate> gone;
  std::ranges::copy_if(in_memory, std::back_inserter(gone), [](const auto& job) { return job.lane().shard == 5; });
  for (const Candidate& job : gone)
    std::erase_if(table, [&](const Row& row) { return row.candidate.job_id == job.job_id; });
  shared().known.remove(gone);
  scan_until(kDue + config.scan_interval);
  EXPECT_EQ(backlog(), shards);
}

TEST_F(ScannerInAStorm, OverdueRowsDoNotWaitBehindPromotedOverflow) {
  const WallTime older = kDue - 200ms;
  insert(older, 1, 6);  // its hint found no room
  fire(in_memory.size());
  scan_until(db_now() + 60ms);
  ASSERT_EQ(backlog(), shards);
  const auto catalog = shared().catalog.get();
  for (std::size_t i = 0; i < shards.size(); ++i) {
    const DueBatch batch = shared().admission.next_batch(1, {*catalog, db_now(), now});
    ASSERT_TRUE(batch.backlog);
    EXPECT_LT(batch.backlog->span.from, older) << batch.backlog->lane.shard;
  }
}

TEST_F(ScannerInAStorm, ATypeWithEnoughJobsInMemoryIsNotPromoted) {
  set_types({biz_type(1), biz_type(2)});
  const WallTime due = kDue + 2s;
  for (const Shard shard : shards)
    for (int i = 0; i < 8; ++i) insert(due, 2, shard);
  scan_until(due + 100ms);
  EXPECT_EQ(backlog(), std::vector<Shard>{});
  EXPECT_TRUE(shared().due.has_backlog({7, 2})) << "of the other it has nothing, and had no room for all";
}

TEST_F(ScannerInAStorm, TheScannerRestsWhenTheOverflowIsBacklogAlready) {
  for (const Shard shard : shards) shared().due.push_backlog({{shard, 1}, {}, Pace::fresh});
  scan_until(kDue + config.scan_interval);
  EXPECT_GT(scanner().step(now), now + config.scan_interval / 10);
}

TEST_F(ScannerInAStorm, OfACatchUpTypeOnlyFreshOverflowIsPromoted) {
  BizType type = biz_type(1);
  type.catch_up_rate_per_s = 1;
  set_types({type});
  now += config.lookahead + 1s;
  fire(in_memory.size());
  scan_until(db_now() + 1ms);
  const auto catalog = shared().catalog.get();
  const DueBatch batch = shared().admission.next_batch(8, {*catalog, db_now(), now});
  ASSERT_TRUE(batch.backlog);
  EXPECT_GE(batch.backlog->span.from, kDue) << "what is due there is for the catch-up";
}

class ScannerLookahead : public ScannerTest {
 protected:
  void SetUp() override {
    ScannerTest::SetUp();
    keeps_awake = true;
    config.capacity = 64;  // 48 of one type
  }
  // How far ahead the next scan looks, to ten milliseconds: what it knows of the time is a lower bound.
  Duration reach() {
    scan();
    for (int i = 0; i < 20 && asked_window().empty(); ++i) scan();
    if (asked_window().empty()) return Duration(0);
    return (asked_window().front().before - asked_at + 5ms) / 10ms * 10ms;
  }
  void fire_all_due() {
    std::erase_if(table, [&](const Row& row) {
      const bool is_due = row.candidate.fire_at <= db_now();
      if (is_due) shared().known.remove(row.candidate.job_id);
      return is_due;
    });
  }
};

TEST_F(ScannerLookahead, ShrinksWhileMemoryIsNearlyFullAndRecoversInSteps) {
  EXPECT_EQ(reach(), config.lookahead);
  for (int i = 0; i < 44; ++i) insert(db_now() + config.lookahead + 500ms);
  EXPECT_EQ(reach(), config.lookahead);
  EXPECT_EQ(found().size(), 44U);
  EXPECT_EQ(reach(), config.scan_interval * 3 / 2) << "no lane may be overtaken between two scans";
  EXPECT_EQ(reach(), config.scan_interval * 3 / 2);
  now += 5s;
  fire_all_due();
  Duration last = reach();
  for (int i = 0; i < 40; ++i) {
    const Duration next = reach();
    EXPECT_LE(next, last + config.lookahead / 16);
    EXPECT_GE(next, last);
    last = next;
  }
  EXPECT_EQ(last, config.lookahead);
}

TEST_F(ScannerLookahead, JobsBeyondItAreFoundInTimeByLaterScans) {
  reach();
  for (int i = 0; i < 44; ++i) insert(db_now() + 500ms);
  reach();
  found();
  scan();  // it knows that memory is nearly full
  // Behind the end of what was read before, beyond the end of what is read now: no hint is needed, the row is read yet.
  const JobId later = insert(db_now() + 3s), soon = insert(db_now() + 300ms);
  EXPECT_FALSE(shared().hint({later, 1, table[table.size() - 2].candidate.fire_at}));
  EXPECT_TRUE(shared().hint({soon, 1, table.back().candidate.fire_at}));
  EXPECT_TRUE(shared().hint({soon, 1, db_now() + 3s})) << "no scan gives another entry to what memory knows";
  const WallTime due = db_now() + 3s;
  std::vector<JobId> all;
  while (db_now() < due) {
    scan();
    fire_all_due();
    for (const JobId job : found()) all.push_back(job);
    if (std::ranges::count(all, later) == 1) break;
  }
  EXPECT_EQ(std::ranges::count(all, later), 1);
  EXPECT_LT(db_now(), due);
  EXPECT_EQ(std::ranges::count(all, soon), 2) << "one entry for each time";
}

TEST_F(ScannerLookahead, ShrinksAtTheFirstRefusedHint) {
  int calls = 0;
  shared().on_refusal = [&] { ++calls; };
  reach();
  JobId id = 1'000'000;
  for (int i = 0; i < 48; ++i) EXPECT_TRUE(shared().hint({++id, 1, db_now() + 2s}));
  EXPECT_EQ(calls, 0);
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(shared().hint({++id, 1, db_now() + 2s}));
  EXPECT_EQ(calls, 1);
  scan();
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(shared().hint({++id, 1, db_now() + 100ms}));
  EXPECT_EQ(calls, 1) << "what is read cannot become less";
}

TEST_F(ScannerLookahead, IsUnknownAfterAFailedScan) {
  reach();
  for (int i = 0; i < 44; ++i) insert(db_now() + 500ms);
  reach();
  found();
  const Candidate later{1'000'000, 1, db_now() + 4s};
  EXPECT_FALSE(shared().hint(later));
  fails = true;
  scan();
  EXPECT_TRUE(shared().hint(later));
  shared().known.remove(later.job_id);
  bool is_taken = false;
  store.on_scan = [&](std::span<const ScanRange> ranges, const LaneSearch& search) {
    is_taken = shared().hint(later);
    return answer(ranges, search);
  };
  scan();
  EXPECT_TRUE(is_taken) << "nor while the next one is not answered";
}

TEST_F(ScannerLookahead, BoundsTheIdleInterval) {
  shared().membership.set_sole_member(true);
  shared().membership.set_listening(true);
  for (int i = 0; i < 44; ++i) insert(db_now() + 500ms);
  reach();
  shared().candidates.pop_some(1'000'000);
  now += 600ms;
  fire_all_due();
  for (int i = 0; i < 5; ++i) {
    const MonoTime before = now;
    const Duration ahead = reach();
    EXPECT_LT(now - before, ahead) << i;
  }
}

TEST_F(ScannerTest, ALaneWithMoreThanAPageEndsTheGroups) {
  config.many_rows = 16;
  config.window_page = 16;
  shards = {0, 1, 2, 3, 4, 5, 6, 7};
  const auto lanes_asked = [&] {
    std::set<Shard> lanes;
    for (const ScanRange& range : asked) lanes.insert(range.lane.shard);
    return lanes.size();
  };
  const auto scan_and_insert = [&](int n) {
    scan();
    for (const Shard shard : shards)
      for (int i = 0; i < n; ++i) insert(db_now() + config.lookahead + 1ms, 1, shard);
  };
  for (int i = 0; i < 6; ++i) scan_and_insert(2);
  for (int i = 0; i < 12; ++i) {
    scan_and_insert(2);
    ASSERT_LE(lanes_asked(), 2U) << "although sweeps find more than a page that memory has: " << i;
  }
  scan_and_insert(20);
  ASSERT_LE(lanes_asked(), 2U);
  scan();
  ASSERT_LE(lanes_asked(), 2U);
  const MonoTime before = now;
  scan();
  EXPECT_EQ(lanes_asked(), shards.size());
  EXPECT_EQ(now - before, round_trip) << "at once";
}

TEST_F(ScannerTest, AnIdleSoleMemberThatListensScansHalfAsOften) {
  shards.clear();
  for (Shard shard = 0; shard < 20; ++shard) shards.push_back(shard);
  config.sweep_interval = 10s;
  scan_until_it_rests();
  const auto next_scan_comes_after = [&] {
    scan();  // as the state was before
    scan_until_it_rests();
    const MonoTime last = now;
    scan();
    return now - last - round_trip;
  };
  EXPECT_EQ(next_scan_comes_after(), 1s);
  shared().membership.set_sole_member(true);
  EXPECT_EQ(next_scan_comes_after(), 1s) << "it may miss a notification";
  shared().membership.set_listening(true);
  EXPECT_EQ(next_scan_comes_after(), 2s);
  const JobId job = insert(db_now() + 5s);
  EXPECT_LE(next_scan_comes_after(), 1s) << "it found a lane";
  table.clear();
  EXPECT_EQ(next_scan_comes_after(), 1s) << "it still has a job in memory";
  shared().known.remove(job);
  EXPECT_EQ(found(), std::vector<JobId>{job});
  EXPECT_EQ(next_scan_comes_after(), 2s);
  shared().membership.set_sole_member(false);
  EXPECT_EQ(next_scan_comes_after(), 1s);
}

}  // namespace
}  // namespace tocsin

#include "pipeline/scanner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "unit/pipeline/scanner_fixture.h"

namespace tocsin {
namespace {

TEST_F(ScannerTest, ReadsOnlyTheTimeUntilItIsKnown) {
  set_types({biz_type(1)});
  Scanner first(shared(), store);
  EXPECT_LE(first.step(now), now);
  EXPECT_TRUE(asked.empty());
  EXPECT_TRUE(shared().db_clock.at_least(now));
  EXPECT_GT(first.step(now), now);
  EXPECT_TRUE(is_searched({0, 1}));
}

TEST_F(ScannerTest, FindsJobsDueSoonAndOverdueButNoneLater) {
  const JobId soon = insert(kStart + 4s), overdue = insert(kStart - 1h);
  insert(kStart + 6s);
  scan_until_it_rests();
  EXPECT_EQ(found(), (std::vector<JobId>{soon, overdue}));
  EXPECT_EQ(events[Counter::candidates], 2);
  EXPECT_TRUE(shared().known.contains(soon));
}

TEST_F(ScannerTest, ReadsEveryShardOfAPullTypeWithPollsHere) {
  shards = {1};
  shared().all_shards.set(std::make_shared<const std::vector<Shard>>(std::vector<Shard>{0, 1, 2, 3}));
  set_types({biz_type(1), biz_type(2, "pull")});
  const auto lanes_of = [&](TypeId type) {
    std::set<Shard> lanes;
    for (const Shard shard : std::vector<Shard>{0, 1, 2, 3})
      if (is_searched({shard, type})) lanes.insert(shard);
    return lanes;
  };
  scan();
  EXPECT_EQ(lanes_of(2), std::set<Shard>{1}) << "no consumer asks";
  auto poll = std::make_shared<Poll>();
  poll->type_id = 2;
  poll->arrived = now;
  poll->deadline = now;
  poll->is_gone = [] { return false; };
  poll->answer = [](std::vector<ClaimedJob>) {};
  ASSERT_TRUE(shared().polls->add(poll));
  scan();
  EXPECT_EQ(lanes_of(2), (std::set<Shard>{0, 1, 2, 3}));
  EXPECT_EQ(lanes_of(1), std::set<Shard>{1});
  shared().polls->expire(now + 1s);
  now += 1min;
  scan();
  EXPECT_EQ(lanes_of(2), std::set<Shard>{1}) << "no consumer has asked for long";
}

TEST_F(ScannerTest, InterleavesShardsWhenThousandsAreDueAtOnce) {
  shards = {0, 1, 2, 3};
  for (const Shard shard : shards) {
    for (int i = 0; i < 200; ++i) insert(kStart + 1s, 1, shard);
  }
  scan_until_it_rests();
  std::map<Shard, int> seen;
  for (const Candidate& job : shared().candidates.pop_some(400)) ++seen[shard_of(job.job_id)];
  ASSERT_EQ(seen.size(), 4U) << "every shard gets on";
  for (const auto& [shard, n] : seen) EXPECT_NEAR(n, 100, 32) << shard;
}

TEST_F(ScannerTest, ReadsOnWhereItsWindowEnded) {
  insert(kStart + 1s);
  scan_until_it_rests();
  const WallTime horizon = asked_window().at(0).before;
  EXPECT_GE(horizon, kStart + config.lookahead);
  EXPECT_LE(horizon, kStart + config.lookahead + 2 * round_trip);
  EXPECT_EQ(found().size(), 1U);
  scan_until_it_rests();
  EXPECT_EQ(asked_window().at(0).after, horizon);
  EXPECT_TRUE(found().empty());
}

// It was seen running, with the end of its lease for a time, and entered memory with that.
TEST_F(ScannerTest, AReleasedJobEntersAgainWithItsNewTime) {
  const JobId job = insert(kStart + 4s);
  scan_until_it_rests();
  ASSERT_EQ(found(), std::vector{job});
  table.front().candidate.fire_at = db_now();
  scan_until_it_rests();
  EXPECT_EQ(found(), std::vector{job});
  scan_until_it_rests();
  EXPECT_TRUE(found().empty()) << "once";
}

TEST_F(ScannerTest, PagesThroughJobsOfTheSameInstantById) {
  config.window_page = 4;
  std::vector<JobId> all;
  for (int i = 0; i < 23; ++i) all.push_back(insert(kStart + 2s));
  scan_until_it_rests();
  EXPECT_EQ(found(), all);
  EXPECT_EQ(store.calls, 7) << "a search, and no page twice";
}

TEST_F(ScannerTest, ContinuesAtOnceAfterAFullPageAndReadsOnlyThere) {
  config.window_page = 4;
  shards = {0, 1};
  for (int i = 0; i < 6; ++i) insert(kStart + 1s + i * 1ms, 1, 0);
  insert(kStart + 1s, 1, 1);
  EXPECT_LE(scanner().step(now), now) << "a search";
  EXPECT_LE(scanner().step(now), now);
  EXPECT_EQ(found().size(), 5U);
  EXPECT_GT(scanner().step(now), now);
  ASSERT_EQ(asked.size(), 1U);
  EXPECT_EQ(asked[0].lane, (Lane{0, 1}));
  EXPECT_EQ(found().size(), 2U);
}

TEST_F(ScannerTest, FindsAJobThatWasCommittedBehindItsWindow) {
  scan_until_it_rests();
  const JobId late = insert(kStart + 500ms);
  scan_until_it_rests();
  EXPECT_EQ(found(), std::vector<JobId>{late}) << "one interval later it is overdue";
}

TEST_F(ScannerTest, LowWaterMarkLagsNowForLateCommits) {
  keeps_awake = true;
  scan_until_it_rests();
  scan_until_it_rests();
  const WallTime low = asked_overdue().at(0).after;
  EXPECT_GE(db_now() - low, config.late_commit_margin);
  EXPECT_LE(db_now() - low, config.late_commit_margin + 2 * config.scan_interval);
}

TEST_F(ScannerTest, LowWaterMarkDoesNotPassRowsThatASlowReplyMissed) {
  keeps_awake = true;
  round_trip = 20s;  // the snapshot is as old as the request
  store.on_scan = [this](std::span<const ScanRange> ranges, const LaneSearch& search) {
    auto reply = answer(ranges, search);
    reply->db_now = db_now();  // read at the very end
    return reply;
  };
  scan_until_it_rests();
  for (int i = 0; i < 3; ++i) {
    const WallTime seen = asked_at;
    scan_until_it_rests();
    EXPECT_LE(asked_overdue().at(0).after, seen - config.late_commit_margin);
  }
}

TEST_F(ScannerTest, LowWaterMarkStaysBelowTheOldestLiveRow) {
  insert(kStart - 1h);
  scan_until_it_rests();
  scan_until_it_rests();
  EXPECT_LT(asked_overdue().at(0).after, kStart - 1h);
  EXPECT_GE(asked_overdue().at(0).after, kStart - 1h - 1ms);
}

TEST_F(ScannerTest, AnEmptyLaneThatFillsUpAllAtOnceIsReadToItsEnd) {
  scan();
  scan();
  // More than a page, overdue and due soon: the first page ends among what is overdue, then in the window.
  const auto page = static_cast<int>(shared().config.window_page);
  std::vector<JobId> all;
  for (int i = 0; i < 40; ++i) all.push_back(insert(db_now() - 1ms * (40 - i)));
  for (int i = 0; i < 2 * page; ++i) all.push_back(insert(db_now() + 2s));
  std::ranges::sort(all);
  scan_until_it_rests();
  EXPECT_EQ(found(), all);
}

TEST_F(ScannerTest, ABacklogLaneIsReadAtOnceWhenItsBacklogEnds) {
  scan();
  scan();
  for (int i = 0; i < static_cast<int>(shared().config.window_page) + 10; ++i) insert(db_now() - 900ms);
  scan_until_it_rests();
  ASSERT_TRUE(shared().due.has_backlog({0, 1}));
  found();
  const auto end_backlog = [&] {
    shared().due.end_backlog({{0, 1}, {}, Pace::fresh});
    shared().ended_backlogs.try_push({0, 1});
  };
  table.clear();
  now += 6ms;
  const JobId late = insert(db_now() - 1ms), due_soon = insert(db_now() + config.lookahead - 3ms);
  end_backlog();
  scanner().step(now);
  EXPECT_EQ(found(), (std::vector{late, due_soon}));
  const int calls = store.calls;
  end_backlog();  // of rows that another transaction locks
  scanner().step(now);
  EXPECT_EQ(store.calls, calls) << "not again and again";
}

TEST_F(ScannerTest, AnOverduePageOfUnknownRowsBecomesABacklog) {
  config.overdue_page = 8;
  for (int i = 0; i < 100; ++i) insert(kStart - 1h + i * 1ms);
  scan_until_it_rests();
  EXPECT_TRUE(found().empty());
  EXPECT_EQ(shared().known.size(), 0U);
  EXPECT_TRUE(shared().due.has_backlog({0, 1}));
  const auto catalog = shared().catalog.get();
  const DueBatch batch = shared().admission.next_batch(10, {*catalog, db_now(), now});
  ASSERT_TRUE(batch.backlog);
  EXPECT_LT(batch.backlog->span.from, kStart - 1h) << "no row lies before it";
}

TEST_F(ScannerTest, AnOverduePageOfKnownJobsIsNoBacklog) {
  config.overdue_page = 8;
  for (int i = 0; i < 8; ++i) insert(kStart + 100ms + i * 1ms);
  scan_until_it_rests();
  EXPECT_EQ(found().size(), 8U);
  scan_until_it_rests();
  EXPECT_EQ(asked_overdue().at(0).limit, 8);
  EXPECT_FALSE(shared().due.has_backlog({0, 1}));
}

TEST_F(ScannerTest, GivesExhaustedJobsToTheReaperOnceTheirLeaseHasEnded) {
  const JobId ended = insert(kStart - 1s, 1, 0, true), runs = insert(kStart + 2s, 1, 0, true);
  scan_until_it_rests();
  EXPECT_EQ(shared().expired.pop_some(10), std::vector<JobId>{ended});
  EXPECT_TRUE(found().empty());
  EXPECT_EQ(shared().known.size(), 0U);
  table.erase(table.begin());
  for (int i = 0; i < 3; ++i) scan_until_it_rests();
  EXPECT_EQ(shared().expired.pop_some(1), std::vector<JobId>{runs});
}

// Their history cannot be written: the reads end with them again and again.
TEST_F(ScannerTest, APageOfExhaustedJobsHidesNoRowBehindIt) {
  config.overdue_page = 8;
  for (int i = 0; i < 8; ++i) insert(kStart - 1h + i * 1ms, 1, 0, true);
  insert(kStart - 1min);
  scan_until(kStart + 3s);
  EXPECT_EQ(backlog_begin({0, 1}), kStart - 1h - 1us);
}

TEST_F(ScannerTest, AFewExhaustedJobsHideNoLateRowBehindThem) {
  BizType slow = biz_type(1);
  slow.catch_up_rate_per_s = 1;
  set_types({slow});
  for (int i = 0; i < 8; ++i) insert(kStart - 1h + i * 1ms, 1, 0, true);
  insert(kStart - 1min);
  scan_until(kStart + 3s);
  EXPECT_NE(backlog_begin({0, 1}, Pace::catch_up), WallTime::max());
}

TEST_F(ScannerTest, SweepsAgainAfterAFailedRead) {
  keeps_awake = true;
  scan_until_it_rests();
  scan_until_it_rests();
  ASSERT_GT(asked_overdue().at(0).after, WallTime::min());
  fails = true;
  now += config.scan_interval;
  const MonoTime failed_at = now;
  EXPECT_EQ(scanner().step(now), failed_at + config.retry_pause);
  EXPECT_EQ(events.failures(), 1);
  fails = false;
  now += config.retry_pause;
  scanner().step(now);
  scanner().step(now);
  EXPECT_EQ(asked_overdue().at(0).after, WallTime::min());
}

TEST_F(ScannerTest, SweepsAgainWhenTheClockWasSetBack) {
  for (int i = 0; i < 3; ++i) scan_until_it_rests();
  step_database_clock(-1h);
  scan_until_it_rests();  // learns of it
  insert(kStart - 1h + 2s);
  scan_until_it_rests();
  EXPECT_EQ(asked_overdue().at(0).after, WallTime::min());
  EXPECT_EQ(found().size(), 1U);
}

TEST_F(ScannerTest, SweepsAgainWhenAnotherServerMayHaveAnswered) {
  for (int i = 0; i < 8; ++i) scan_until_it_rests();
  connection = 1;         // a standby took over that had heard nothing for a while:
  insert(kStart - 500s);  // what was finished is pending again
  scan_until_it_rests();  // learns of it
  scan_until_it_rests();
  EXPECT_EQ(asked_overdue().at(0).after, WallTime::min());
  EXPECT_EQ(found().size(), 1U);
}

TEST_F(ScannerTest, SweepsOnRequestWithoutWaitingForTheInterval) {
  keeps_awake = true;
  scan_until_it_rests();
  scan_until_it_rests();
  const int calls = store.calls;
  scanner().step(now);
  EXPECT_EQ(store.calls, calls) << "it is not time yet";
  scanner().request_sweep();
  scanner().step(now);
  EXPECT_EQ(store.calls, calls + 1);
  scanner().step(now);
  EXPECT_EQ(asked_overdue().at(0).after, WallTime::min());
}

TEST_F(ScannerTest, SweepsEveryShardOncePerSweepIntervalAFewAtATime) {
  keeps_awake = true;
  shards.clear();
  for (Shard shard = 0; shard < 20; ++shard) shards.push_back(shard);
  config.sweep_interval = 10s;  // ten scans
  scan_until_it_rests();
  std::map<Shard, int> swept;
  for (int i = 0; i < 10; ++i) {
    scan_until_it_rests();
    int at_once = 0;
    for (const ScanRange& range : asked_overdue()) {
      if (range.after != WallTime::min()) continue;
      ++swept[range.lane.shard];
      ++at_once;
    }
    EXPECT_EQ(at_once, 2);
  }
  EXPECT_EQ(swept.size(), 20U);
  for (const auto& [shard, n] : swept) EXPECT_EQ(n, 1) << shard;
}

TEST_F(ScannerTest, LeavesPausedTypesAlone) {
  BizType paused = biz_type(1);
  paused.paused = true;
  set_types({paused, biz_type(2)});
  insert(kStart - 1s, 1);
  const JobId other = insert(kStart - 1s, 2);
  scan_until_it_rests();
  EXPECT_EQ(found(), std::vector<JobId>{other});
  for (const ScanRange& range : asked) EXPECT_EQ(range.lane.type_id, 2);
  scan();
  EXPECT_FALSE(is_searched({0, 1}));
}

TEST_F(ScannerTest, FindsEverythingOfATypeThatResumes) {
  BizType paused = biz_type(1);
  paused.paused = true;
  set_types({paused});
  const JobId job = insert(kStart + 1s);
  for (int i = 0; i < 10; ++i) scan_until_it_rests();
  EXPECT_TRUE(found().empty());
  set_types({biz_type(1)});
  scan_until_it_rests();
  EXPECT_EQ(found(), std::vector<JobId>{job});
}

TEST_F(ScannerTest, ReadsOnlyTheShardsItOwnsNow) {
  shards = {0, 1};
  scan_until_it_rests();
  shared().shards.set(std::make_shared<const std::vector<Shard>>(std::vector<Shard>{1, 2}));
  const JobId job = insert(kStart - 1s, 1, 2);
  scan_until_it_rests();
  for (const ScanRange& range : asked) EXPECT_NE(range.lane.shard, 0);
  EXPECT_EQ(found(), std::vector<JobId>{job});
}

TEST_F(ScannerTest, FullMemoryStopsTheReadingAndLosesNothing) {
  config.capacity = 8;  // six of one type
  config.window_page = 4;
  std::vector<JobId> all;
  for (int i = 0; i < 10; ++i) all.push_back(insert(kStart + 4s + i * 1us));
  scan_until_it_rests();
  EXPECT_EQ(found(), std::vector<JobId>(all.begin(), all.begin() + 6));
  EXPECT_GT(events[Counter::refused], 0);
  scan_until_it_rests();
  EXPECT_TRUE(asked_window().empty()) << "no room, no reading";
  for (int i = 0; i < 6; ++i) shared().known.remove(all[static_cast<std::size_t>(i)]);
  table.erase(table.begin(), table.begin() + 6);
  scan_until(kStart + 4s);
  EXPECT_EQ(found(), std::vector<JobId>(all.begin() + 6, all.end()));
  scan_until(kStart + 4s + 200ms);
  EXPECT_FALSE(shared().due.has_backlog({0, 1})) << "all of it is in memory now";
}

TEST_F(ScannerTest, ReportsWhenScansCannotKeepUp) {
  keeps_awake = true;
  scan_until(kStart + 3s);
  EXPECT_EQ(shared().scans.trouble(now), "");
  round_trip = config.scan_interval * 2;
  scan_until(db_now() + 6s);
  EXPECT_EQ(shared().scans.trouble(now), "scans are behind: one takes 2000 ms where there is one every 1000 ms");
  round_trip = 1ms;
  scan_until(db_now() + 6s);
  EXPECT_EQ(shared().scans.trouble(now), "");
  EXPECT_TRUE(shared().scans.trouble(now + config.lookahead + 1s).starts_with("scans are behind: the last one ended"));
}

TEST_F(ScannerTest, RestsWhileTheNodeDrains) {
  scanner();
  shared().membership.begin_drain();
  EXPECT_EQ(scanner().step(now), kWhenWoken);
  EXPECT_EQ(store.calls, 0);
}

}  // namespace
}  // namespace tocsin

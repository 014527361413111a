// Which lanes a scan reads: those with rows due soon, and nothing of the others.
#include "unit/pipeline/scanner_fixture.h"

namespace tocsin {
namespace {

TEST_F(ScannerTest, SearchesEveryLaneOfItsShardsAndReadsThoseWithRows) {
  shards = {3, 9};
  set_types({biz_type(1), biz_type(2), biz_type(3), biz_type(7)});
  insert(kStart + 1s, 2, 9);
  scan();
  EXPECT_TRUE(asked.empty());
  for (const Shard shard : shards)
    for (const TypeId type : {1, 2, 3, 7}) EXPECT_TRUE(is_searched({shard, type})) << shard << ' ' << type;
  EXPECT_EQ(searched.walks.size(), 4U) << "consecutive types together";
  scan();
  EXPECT_TRUE(searched.walks.empty()) << "it goes on with what it found";
  ASSERT_EQ(asked.size(), 2U) << "the window and what is overdue";
  EXPECT_EQ(asked[0].lane, (Lane{9, 2}));
  scan();
  EXPECT_EQ(asked.size(), 2U);
  EXPECT_FALSE(is_searched({9, 2})) << "it is read";
  EXPECT_TRUE(is_searched({9, 1}));
  EXPECT_TRUE(is_searched({9, 3}));
  EXPECT_TRUE(is_searched({3, 2}));
}

TEST_F(ScannerTest, AThousandEmptyTypesCostAsMuchAsOne) {
  std::vector<BizType> types;
  for (TypeId type = 1; type <= 1000; ++type) types.push_back(biz_type(type));
  set_types(types);
  for (int i = 0; i < 5; ++i) {
    scan();
    EXPECT_TRUE(asked.empty());
    EXPECT_EQ(searched.walks.size(), shards.size());
  }
  EXPECT_EQ(scanner().lanes(), 0U);
}

// Far-off rows of many lanes cost a probe each in a walk; in an index that is small for so many lanes, next to nothing.
TEST_F(ScannerTest, ManyLanesWithFewRowsAreReadAndNotWalked) {
  shards = {3, 9};
  std::vector<BizType> types;
  for (TypeId type = 1; type <= 1000; ++type) {
    types.push_back(biz_type(type));
    for (const Shard shard : shards) insert(kStart + 24h, type, shard);
  }
  set_types(types);
  shared().all_shards.set(std::make_shared<const std::vector<Shard>>(shards));
  index_bytes = 200'000;
  int walks = 0;
  for (int i = 0; i < 600; ++i) {
    scan();
    walks += searched.most_bytes < index_bytes;
  }
  EXPECT_EQ(walks, 1);
  const JobId near = insert(db_now() + 3s, 500, 9);
  scan_until(db_now() + 2s);
  EXPECT_EQ(found(), std::vector{near});
}

TEST_F(ScannerTest, AnIndexThatIsLargeForItsLanesIsWalked) {
  for (int i = 0; i < 100; ++i) insert(kStart + 24h);
  shared().all_shards.set(std::make_shared<const std::vector<Shard>>(shards));
  index_bytes = std::int64_t{8} * 4096;
  scan_until(kStart + 60s);
  EXPECT_LT(searched.most_bytes, index_bytes);
}

TEST_F(ScannerTest, ALaneWhoseRowsAreDueLaterHasNoCursor) {
  insert(kStart + 1h);
  scan_until(kStart + 10s);
  EXPECT_EQ(scanner().lanes(), 0U);
}

TEST_F(ScannerTest, ALaneIsForgottenWhenItsRowsAreGoneAndNoSnapshotIsOlder) {
  oldest_writer = 6;
  next_writer = 7;
  insert(kStart + 1s);
  scan_until(kStart + 3s);
  table.clear();
  scan_until(kStart + 30s);
  EXPECT_EQ(scanner().lanes(), 1U) << "dead index entries may lie at its beginning";
  oldest_writer = 8;
  next_writer = 9;
  scan_until(kStart + 33s);
  EXPECT_EQ(scanner().lanes(), 0U);
  const JobId job = insert(db_now() + 2s);
  found();
  scan_until(db_now() + 1s + 10ms);
  EXPECT_EQ(found(), std::vector{job});
}

TEST_F(ScannerTest, ALaneWithJobsInMemoryIsNotForgotten) {
  oldest_writer = next_writer = 7;
  insert(kStart + 4s);
  scan_until(kStart + 4s);
  EXPECT_EQ(scanner().lanes(), 1U);
}

TEST_F(ScannerTest, FindsExhaustedJobsAmongTheRowsOfABacklogOncePerSweep) {
  config.overdue_page = 8;
  config.sweep_interval = 10s;
  const auto fill = [&](WallTime from) {
    for (int i = 0; i < 40; ++i) insert(from + i * 1ms);
  };
  fill(kStart - 1h);
  const JobId first = insert(kStart - 1h + 30ms, 1, 0, true);
  scan_until(kStart + 21s);
  ASSERT_TRUE(shared().due.has_backlog({0, 1}));
  EXPECT_GT(std::ranges::count(shared().expired.pop_some(10), first), 0);
  std::erase_if(table, [&](const Row& row) { return row.candidate.job_id == first; });
  const JobId second = insert(db_now() - 1s, 1, 0, true);
  shared().expired.pop_some(100);
  scan_until(db_now() + 20s);
  EXPECT_GT(std::ranges::count(shared().expired.pop_some(10), second), 0);
}

// Those that ran when the pause began: nothing of the type starts, and they end all the same.
TEST_F(ScannerTest, FindsExhaustedJobsOfAPausedTypeAndReadsNothingElse) {
  config.overdue_page = 8;
  config.sweep_interval = 10s;
  config.audit_interval = 30s;
  oldest_writer = next_writer = 7;
  BizType paused = biz_type(1);
  paused.paused = true;
  set_types({paused});
  for (int i = 0; i < 40; ++i) insert(kStart - 1h + i * 1ms);
  const JobId first = insert(kStart - 1h + 30ms, 1, 0, true);
  int reads = 0;
  while (db_now() < kStart + 21s) {
    scan();
    reads += static_cast<int>(asked.size());
    EXPECT_TRUE(asked_window().empty());
  }
  EXPECT_GT(std::ranges::count(shared().expired.pop_some(10), first), 0) << "within two sweeps";
  EXPECT_LE(reads, 3) << "one per sweep";
  EXPECT_TRUE(found().empty());
  set_types({biz_type(1)});
  scanner().request_scan();
  scan_until_it_rests();
  EXPECT_TRUE(shared().due.has_backlog({0, 1})) << "the whole lane is read when the type resumes";
  set_types({paused});
  shared().due.end_backlog({{0, 1}, {}, Pace::fresh});
  scan_until(db_now() + 5s);
  EXPECT_EQ(scanner().lanes(), 1U);
  table.clear();
  scan_until(db_now() + 65s);
  EXPECT_EQ(scanner().lanes(), 0U) << "the audit has found nothing";
}

// The index knows no exhausted rows: whoever looks for them visits all that are overdue.
TEST_F(ScannerTest, AScanVisitsAPageOfALaneInSearchOfExhaustedJobs) {
  config.overdue_page = 8;
  config.window_page = 16;
  config.sweep_interval = 10s;
  BizType paused = biz_type(1);
  paused.paused = true;
  set_types({paused, biz_type(2)});
  const auto fill = [&](TypeId type) {
    for (int i = 0; i < 300; ++i) insert(kStart - 1h + i / 100 * 1ms, type);
    return insert(kStart - 1h + 3ms, type, 0, true);
  };
  const std::set<JobId> exhausted{fill(1), fill(2)};
  while (db_now() < kStart + 45s) {
    scan();
    for (const ScanRange& range : asked) EXPECT_LE(range.limit, 16);
    EXPECT_LE(asked.size(), 4U);
  }
  EXPECT_TRUE(shared().due.has_backlog({0, 2}));
  const auto found = shared().expired.pop_some(100);
  EXPECT_EQ(std::set<JobId>(found.begin(), found.end()), exhausted) << "two sweeps, and a scan for each page";
}

TEST_F(ScannerTest, APullBacklogWithoutPollsCostsOneSearchPerShard) {
  config.overdue_page = 4;
  set_types({biz_type(1, "pull")});
  for (int i = 0; i < 20; ++i) insert(kStart - 1s + i * 1ms);
  scan_until(kStart + 15s);
  ASSERT_TRUE(shared().due.has_backlog({0, 1}));
  int reads = 0;
  for (int i = 0; i < 60; ++i) {
    scan();
    reads += static_cast<int>(asked.size());
    EXPECT_FALSE(is_searched({0, 1}));
  }
  EXPECT_LE(reads, 6) << "of the oldest rows and for exhausted jobs, with the sweeps";
  shared().due.end_backlog({{0, 1}, {}, Pace::fresh});  // a consumer has come
  scan();
  EXPECT_EQ(asked_overdue().size(), 1U);
}

}  // namespace
}  // namespace tocsin

#include "pipeline/search_pace.h"

#include <gtest/gtest.h>

#include <set>

#include "unit/pipeline/scanner_fixture.h"

namespace tocsin {
namespace {

// ---- The rule alone

class SearchPaceTest : public ::testing::Test {
 protected:
  // Whether a cycle that begins then searches. Each takes `took`.
  bool searches(Duration at, Duration took, bool are_hints_complete = true) {
    pace.begin_cycle(MonoTime(at), are_hints_complete);
    if (pace.is_searching()) pace.note_search(took);
    pace.end_cycle();
    return pace.is_searching();
  }
  SearchPace pace{/*lookahead=*/5s, /*scan_interval=*/1s};
};

TEST_F(SearchPaceTest, EveryCycleMakesACheapSearch) {
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(searches(i * 1s, 50ms));
}

TEST_F(SearchPaceTest, AnExpensiveSearchIsMadeBeforeAnyJobCanBeLate) {
  EXPECT_TRUE(searches(10s, 250ms));
  EXPECT_FALSE(searches(11'250ms, 250ms));
  EXPECT_FALSE(searches(12'250ms, 250ms));
  EXPECT_TRUE(searches(13'250ms, 250ms)) << "a cycle two seconds later would have its answer after 15 s";
}

TEST_F(SearchPaceTest, ASearchThatIsTooSlowForTheLookaheadIsMadeByEveryCycle) {
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(searches(i * 2s, 1s));
}

TEST_F(SearchPaceTest, EveryCycleSearchesWhileHintsMayBeMissedAndOneAfterwards) {
  EXPECT_TRUE(searches(10s, 250ms));
  EXPECT_TRUE(searches(11s, 250ms, /*are_hints_complete=*/false));
  EXPECT_TRUE(searches(12s, 250ms));
  EXPECT_FALSE(searches(13s, 250ms));
}

TEST_F(SearchPaceTest, ARequestDoesNotWait) {
  EXPECT_TRUE(searches(10s, 250ms));
  pace.search_at_once();
  EXPECT_TRUE(searches(11s, 250ms));
  EXPECT_FALSE(searches(12s, 250ms));
}

TEST_F(SearchPaceTest, ACycleThatDoesNotEndHasNotSearched) {
  pace.begin_cycle(MonoTime(10s), true);
  pace.note_search(1s);
  pace.begin_cycle(MonoTime(10'250ms), true);
  ASSERT_TRUE(pace.is_searching());
  pace.note_search(200ms);
  pace.end_cycle();
  EXPECT_FALSE(searches(11s, 200ms)) << "the search took 200 ms, not 1.2 s";
}

// ---- The scanner

class ScannerWithSlowSearches : public ScannerTest {
 protected:
  void SetUp() override {
    ScannerTest::SetUp();
    round_trip = 250ms;
    oldest_writer = next_writer = 7;
    std::vector<BizType> types;
    for (TypeId type = 1; type <= kTypes; ++type) types.push_back(biz_type(type));
    set_types(types);
    shared().membership.set_listening(true);
  }
  // Scans for a minute. Rows are gone when they are due; `each` runs after every scan. Tells how many scans searched.
  void run(const std::function<void()>& each = [] {}) {
    const WallTime end = db_now() + 1min;
    while (db_now() < end) {
      scan();
      ++(searched.walks.empty() ? others : searches);
      for (const Candidate& job : shared().candidates.pop_some(1000)) {
        EXPECT_LT(db_now(), job.fire_at) << job.type_id;
        known.insert(job.job_id);
      }
      std::erase_if(table, [&](const Row& row) {
        if (row.candidate.fire_at > db_now()) return false;
        EXPECT_TRUE(known.contains(row.candidate.job_id)) << row.candidate.type_id;
        shared().known.remove(row.candidate.job_id);
        return true;
      });
      each();
    }
  }
  static constexpr TypeId kTypes = 30;
  std::set<JobId> known;
  int searches = 0, others = 0;
};

TEST_F(ScannerWithSlowSearches, LanesThatBecomeDueBetweenSearchesFireOnTime) {
  for (TypeId type = 1; type <= kTypes; ++type)
    for (int i = 0; i < 8; ++i) insert(kStart + 6s + type * 370ms + i * 6'100ms, type);
  run();
  EXPECT_EQ(known.size(), 240U);
  EXPECT_LT(searches, 30) << "half of the cycles at most";
}

TEST_F(ScannerWithSlowSearches, JobsCreatedBetweenSearchesBeyondHintsFireOnTime) {
  TypeId next = 0;
  run([&] { insert(db_now() + config.lookahead + 10ms, ++next % kTypes + 1); });
  EXPECT_LT(searches, others);
}

TEST_F(ScannerWithSlowSearches, WithoutNotificationsEveryCycleSearches) {
  shared().membership.set_listening(false);
  run();
  EXPECT_EQ(others, 0);
  EXPECT_GT(searches, 40);
}

TEST_F(ScannerWithSlowSearches, TheNextScanFindsAllJobsAfterAPauseExpires) {
  BizType paused = biz_type(1);
  paused.paused = true;
  paused.paused_until = kStart + 20s;
  set_types({paused});
  scan_until(kStart + 19s);
  const JobId job = insert(kStart + 19s + 500ms);  // its hint is refused
  scan_until(kStart + 22s);
  EXPECT_EQ(found(), std::vector{job});
}

}  // namespace
}  // namespace tocsin

// What may not start now leaves the memory and hides nothing: limited, paused, late and too late jobs.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "pipeline/claimer.h"
#include "pipeline/engine.h"
#include "pipeline/lease_reaper.h"
#include "pipeline/scanner.h"
#include "unit/pipeline/stage_fixture.h"

namespace tocsin {
namespace {

class LanesTest : public StageFixture {
 protected:
  void SetUp() override {
    config.overdue_page = 8;
    config.capacity = 3200;  // a limited type keeps 101
  }
  std::vector<Candidate> jobs(TypeId type, int n, WallTime fire_at) {
    std::vector<Candidate> out;
    for (int i = 0; i < n; ++i) out.push_back({++last_id_ * 1024, type, fire_at});
    return out;
  }
  DueBatch pop(std::size_t most = 1000) {
    const auto catalog = shared().catalog.get();
    return shared().admission.next_batch(most, {*catalog, db_now(), now});
  }
  void scan_table(std::vector<Candidate> table) {
    store.on_scan = [this, table = std::move(table)](std::span<const ScanRange> ranges,
                                                     const LaneSearch& search) -> Result<ScanReply> {
      asked.assign(ranges.begin(), ranges.end());
      ScanReply reply;
      reply.db_now = reply.began = db_now();
      reply.asked = reply.answered = now;
      std::set<Lane> lanes;
      for (const LaneSearch::Walk& walk : search.walks)
        for (const Candidate& job : table)
          if (job.lane().shard == walk.shard && job.fire_at < search.before) lanes.insert(job.lane());
      reply.lanes.assign(lanes.begin(), lanes.end());
      for (const ScanRange& range : ranges) {
        auto& rows = reply.rows.emplace_back();
        for (const Candidate& job : table)
          if (job.lane() == range.lane && job.fire_at < range.before && job.fire_at > range.after &&
              std::ssize(rows) < range.limit)
            rows.push_back({job, false});
      }
      return reply;
    };
    know_time();
    Scanner scanner(shared(), store);
    scanner.step(now);  // finds the lanes
    scanner.step(now);
  }
  std::vector<ScanRange> asked;

 private:
  JobId last_id_ = 0;
};

TEST_F(LanesTest, JobsThatMayNotStartYetLeaveTheMemoryToOthers) {
  BizType limited = biz_type(1);
  limited.max_running = 2;
  set_types({limited, biz_type(2)});
  shared().due.push(jobs(1, 1000, kStart));
  shared().due.push(jobs(2, 1, kStart));
  const DueBatch first = pop();
  EXPECT_EQ(first.dropped.size(), 1000U - 101U);
  EXPECT_TRUE(shared().due.has_backlog({0, 1}));
  EXPECT_EQ(std::ranges::count(first.jobs, 2, &Candidate::type_id), 1);
  EXPECT_EQ(shared().due.waiting(1).fresh, 1'000'000U) << "many";
  const DueBatch next = pop();
  EXPECT_EQ(next.jobs.size() + next.limit, 2U) << "as many as may run, from memory or from the table";
  EXPECT_TRUE(pop().empty());
}

TEST_F(LanesTest, JobsOfAFullHandlerLeaveTheMemoryToOthers) {
  BizType dead = biz_type(1);
  const auto pool = pool_of(0);
  dead.pool = pool;
  set_types({dead, biz_type(2)});
  shared().due.push(jobs(1, 1000, kStart));
  shared().due.push(jobs(2, 1, kStart));
  const DueBatch batch = pop();
  EXPECT_EQ(batch.dropped.size(), 1000U - 101U);
  EXPECT_EQ(batch.jobs.size(), 1U);
  EXPECT_TRUE(pop().empty());
  pool->slots = 2'000;
  EXPECT_TRUE(pop(200).backlog) << "from the table";
}

TEST_F(LanesTest, JobsOfOtherTypesStayInMemoryHoweverManyTheyAre) {
  set_types({biz_type(1)});
  shared().due.push(jobs(1, 1000, kStart));
  EXPECT_TRUE(pop(10).dropped.empty());
}

TEST_F(LanesTest, APacedTypeReturnsItsNextWakeUp) {
  BizType paced = biz_type(1);
  paced.rate_per_s = 10;
  set_types({paced});
  shared().due.push(jobs(1, 5, kStart));
  DueBatch batch = pop();
  EXPECT_TRUE(batch.empty());
  EXPECT_LE(batch.again, now + 200ms);
  now += 300ms;
  EXPECT_EQ(pop().jobs.size(), 3U);
}

TEST_F(LanesTest, JobsTooLateInMemoryAreForgottenNotClaimed) {
  BizType limited = biz_type(1);
  limited.drop_older_than = 10s;
  set_types({limited});
  shared().due.push(jobs(1, 3, kStart - 11s));
  shared().due.push(jobs(1, 2, kStart - 9s));
  const DueBatch batch = pop();
  EXPECT_EQ(batch.dropped.size(), 3U);
  ASSERT_EQ(batch.jobs.size(), 2U);
  EXPECT_EQ(batch.jobs[0].fire_at, kStart - 9s);
  EXPECT_EQ(shared().due.size(), 0U);
}

TEST_F(LanesTest, ABacklogStartsAtTheLatenessLimitOfItsType) {
  BizType limited = biz_type(1);
  limited.drop_older_than = 10s;
  set_types({limited});
  shared().due.push_backlog({{0, 1}, WallTime::min()});
  const DueBatch batch = pop();
  ASSERT_TRUE(batch.backlog);
  EXPECT_EQ(batch.backlog->span.from, db_now() - 10s);
}

TEST_F(LanesTest, LateJobsGoToTheCatchUpLaneAndFreshOnesPassThem) {
  BizType type = biz_type(1);
  type.catch_up_rate_per_s = 4;
  set_types({type});
  auto table = jobs(1, 100, kStart - 1h);
  const auto fresh = jobs(1, 3, kStart - 1s);
  table.insert(table.end(), fresh.begin(), fresh.end());
  scan_table(table);
  EXPECT_EQ(shared().known.size(), 3U);
  EXPECT_TRUE(shared().due.has_backlog({0, 1}, Pace::catch_up));
  EXPECT_FALSE(shared().due.has_backlog({0, 1}, Pace::fresh));
  EXPECT_EQ(shared().due.waiting(1).late, 1'000'000U);

  shared().due.push(fresh);
  EXPECT_EQ(pop().jobs.size(), 3U) << "at once";
  DueBatch none = pop();
  EXPECT_TRUE(none.empty()) << "nothing has come together yet";
  EXPECT_LT(none.again, now + 1s);
  now += 500ms;
  const DueBatch late = pop();
  ASSERT_TRUE(late.backlog);
  EXPECT_EQ(late.backlog->pace, Pace::catch_up);
  EXPECT_EQ(late.limit, 2U);
  EXPECT_LE(late.backlog->span.to, kStart - config.lookahead) << "it takes no fresh ones along";
}

TEST_F(LanesTest, JobsTooLateGoToTheReaperAndHideNoOthers) {
  BizType type = biz_type(1);
  type.drop_older_than = 60s;
  set_types({type});
  auto table = jobs(1, 100, kStart - 1h);
  const auto late = jobs(1, 2, kStart - 30s);
  table.insert(table.end(), late.begin(), late.end());
  scan_table(table);
  EXPECT_EQ(shared().known.size(), 2U);
  const auto lanes = shared().too_late.pop_some(10);
  ASSERT_EQ(lanes.size(), 1U);
  EXPECT_EQ(lanes[0].lane, (Lane{0, 1}));
  EXPECT_EQ(lanes[0].before, kStart - 60s);
}

TEST_F(LanesTest, TypesWithoutLatenessSettingsAreReadAsUsual) {
  set_types({biz_type(1)});
  scan_table(jobs(1, 1, kStart + 1s));
  EXPECT_EQ(asked.size(), 2U) << "the window and what is overdue";
}

TEST_F(LanesTest, TheReaperDropsALaneToItsEnd) {
  set_types({biz_type(1)});
  LeaseReaper reaper(shared(), store);
  shared().too_late.try_push({{3, 1}, kStart});
  std::vector<int> left{500, 500, 20};
  store.on_drop_too_late = [&](Lane lane, WallTime before, int limit, int passed) {
    EXPECT_EQ(passed, 0);
    EXPECT_EQ(lane, (Lane{3, 1}));
    EXPECT_EQ(before, kStart);
    EXPECT_EQ(limit, 500);
    const int n = left.front();
    left.erase(left.begin());
    return n;
  };
  while (reaper.step(now) <= now) {
  }
  EXPECT_TRUE(left.empty());
  EXPECT_EQ(events[Counter::dropped_late], 1020);
}

TEST_F(LanesTest, TheReaperPassesATooLateRowThatTheStoreRefuses) {
  set_types({biz_type(1)});
  LeaseReaper reaper(shared(), store);
  shared().too_late.try_push({{3, 1}, kStart});
  constexpr int kCulprit = 300;
  std::vector<int> rows(1200);
  std::iota(rows.begin(), rows.end(), 0);
  store.on_drop_too_late = [&](Lane, WallTime, int limit, int passed) -> Result<int> {
    const auto begin = rows.begin() + std::min<std::ptrdiff_t>(passed, std::ssize(rows));
    const auto end = begin + std::min<std::ptrdiff_t>(limit, rows.end() - begin);
    if (std::find(begin, end, kCulprit) != end) return Error{ErrorCode::invalid, "not this one", ""};
    const auto n = static_cast<int>(end - begin);
    rows.erase(begin, end);
    return n;
  };
  for (int i = 0; i < 100; ++i) now = std::min(reaper.step(now), now + 1s);
  EXPECT_EQ(rows, std::vector<int>{kCulprit});
  EXPECT_EQ(events[Counter::dropped_late], 1199);
}

TEST_F(LanesTest, TheReaperPassesNoRowForTheLockOfATable) {
  set_types({biz_type(1)});
  LeaseReaper reaper(shared(), store);
  for (int i = 0; i < 20; ++i) {
    shared().too_late.try_push({{3, 1}, kStart});
    store.on_drop_too_late = [&](Lane, WallTime, int limit, int passed) -> Result<int> {
      EXPECT_EQ(limit, 500);
      EXPECT_EQ(passed, 0);
      return Error{ErrorCode::conflict, "canceling statement due to lock timeout", kLocked};
    };
    EXPECT_EQ(reaper.step(now), now + config.retry_pause);
    now += config.retry_pause;
  }
}

TEST_F(LanesTest, AHintOfAPausedTypeTakesNoMemory) {
  struct NoStore {
    ScriptedStore store;
  } none;
  Engine engine(config, {0}, {none.store, {&none.store}, none.store, none.store}, {}, events, 1);
  BizType paused = biz_type(1);
  paused.paused = true;
  paused.paused_until = kStart + 10s;
  engine.set_catalog(std::make_shared<const TypeCatalog>(std::vector{paused}));
  EXPECT_FALSE(engine.hint({1024, 1, kStart + 9s}));
  EXPECT_EQ(engine.shared().known.size(), 0U);
  EXPECT_TRUE(engine.hint({1024, 1, kStart + 11s})) << "it goes on before that";
}

}  // namespace
}  // namespace tocsin

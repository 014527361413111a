// The claimer's instant jobs: claimed and finished in one call, in parts when the store refuses a row.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <set>

#include "pipeline/claimer.h"
#include "unit/pipeline/stage_fixture.h"

namespace tocsin {
namespace {

class FireTest : public StageFixture {
 protected:
  void SetUp() override {
    set_types({biz_type(3, "noop")});
    know_time();
    claimer_ = std::make_unique<Claimer>(shared(), store, 42);
  }
  MonoTime step() { return claimer_->step(now); }
  void steps(int n) {
    for (int i = 0; i < n; ++i) now = std::min(step(), now + 1s);
  }
  // The table of type 3. A call that reaches a row which `is_refused` names fails as a whole.
  void store_rows(Rows& rows, bool (*is_refused)(JobId)) {
    store.on_fire_due = [&rows, is_refused](Lane, DueSpan span, int limit) -> Result<std::vector<Fired>> {
      std::vector<Fired> done;
      auto end = rows.upper_bound(span.after());
      const auto begin = end;
      for (; end != rows.end() && std::ssize(done) < limit; ++end) {
        if (is_refused(end->second)) return refused();
        done.push_back({end->second, 3, end->first, end->first});
      }
      rows.erase(begin, end);
      return done;
    };
    scan_from(rows, 3);
  }
  static Error refused() { return {ErrorCode::invalid, "not this one", ""}; }
  // The lock of a table.
  static Error locked() { return {ErrorCode::conflict, "canceling statement due to lock timeout", kLocked}; }
  std::size_t running() { return shared().limiter.running(); }

 private:
  std::unique_ptr<Claimer> claimer_;
};

TEST_F(FireTest, FiresInstantTypesInOneCall) {
  push_due({{1, 3, kStart}, {2, 3, kStart - 1s}});
  store.on_fire = [](auto jobs) {
    EXPECT_EQ(jobs.size(), 2U);
    return std::vector<Fired>{{1, 3, kStart, kStart + 4ms}};
  };
  step();
  EXPECT_EQ(running(), 0U);
  EXPECT_EQ(events[Counter::finished_done], 1);
  EXPECT_EQ(events.done_elsewhere(), (std::map<TypeId, std::int64_t>{{3, 1}}));
  EXPECT_EQ(events[Counter::claims_lost], 1);
  EXPECT_EQ(events.lateness(), std::vector<Duration>{4ms});
  EXPECT_EQ(shared().known.size(), 0U);
}

TEST_F(FireTest, ForgetsInstantJobsAfterAnyFailure) {
  for (const Error& error : {unavailable(), in_doubt()}) {
    push_due({{1, 3, kStart}});
    store.on_fire = [&](auto) { return error; };
    EXPECT_EQ(step(), now + config.retry_pause);
    EXPECT_EQ(shared().known.size(), 0U) << "done, or pending and scanned again";
  }
  shared().due.push_backlog({{0, 3}, kStart});
  store.on_fire_due = [](auto, auto, auto) { return in_doubt(); };
  step();
  EXPECT_FALSE(shared().due.has_backlog({0, 3}));
}

TEST_F(FireTest, SplitsARefusedBatchUntilTheRowIsAlone) {
  push_due({{1, 3, kStart}, {2, 3, kStart}, {3, 3, kStart}, {4, 3, kStart}, {5, 3, kStart}, {6, 3, kStart}});
  constexpr JobId kCulprit = 4;
  std::set<JobId> fired;
  store.on_fire = [&](std::span<const JobId> jobs) -> Result<std::vector<Fired>> {
    if (std::ranges::count(jobs, kCulprit) > 0) return refused();
    std::vector<Fired> done;
    for (const JobId job : jobs) {
      EXPECT_TRUE(fired.insert(job).second) << job;
      done.push_back({job, 3, kStart, kStart});
    }
    return done;
  };
  steps(20);
  EXPECT_EQ(fired, (std::set<JobId>{1, 2, 3, 5, 6}));
  EXPECT_EQ(events[Counter::finished_done], 5);
  EXPECT_EQ(shared().known.size(), 0U) << "a scan finds the culprit";
  push_due({{7, 3, kStart}, {8, 3, kStart}, {9, 3, kStart}});
  const int before = store.calls;
  steps(20);
  EXPECT_EQ(fired.size(), 8U);
  EXPECT_LE(store.calls - before, 3) << "parts grow again";
}

TEST_F(FireTest, PassesARowOfABacklogThatTheStoreDoesNotFire) {
  for (const Duration apart : {1000us, 0us}) {  // also among rows of its instant
    Rows rows;
    for (JobId id = 1; id <= 1200; ++id) rows.insert({kStart + id * apart, id});
    constexpr JobId kCulprit = 701;
    shared().due.push_backlog({{0, 3}, kStart});
    store_rows(rows, [](JobId id) { return id == kCulprit; });
    const auto fired_before = events[Counter::finished_done];
    steps(200);
    EXPECT_EQ(rows.size(), 1U) << apart.count();
    EXPECT_EQ(events[Counter::finished_done] - fired_before, 1199);
    EXPECT_FALSE(shared().due.has_backlog({0, 3}));
    EXPECT_EQ(shared().ended_backlogs.pop_some(10).size(), 1U) << "the scanner reads what is left";
  }
}

// Each sweep lets the backlog begin at the refused rows again, so they must be passed long before the next one.
TEST_F(FireTest, ManyRefusedRowsOfABacklogArePassedWithFewPauses) {
  Rows rows;
  for (JobId id = 1; id <= 400; ++id) rows.insert({kStart + id * 1ms, id});
  shared().due.push_backlog({{0, 3}, kStart});
  store_rows(rows, [](JobId id) { return id <= 300; });
  int pauses = 0;
  for (MonoTime next = now; rows.size() > 300; now = std::max(now, next)) {
    next = step();
    if (next > now) {
      EXPECT_EQ(step(), next) << "also when it is woken";
    }
    pauses += next > now ? 1 : 0;
    ASSERT_LE(pauses, 3) << "one for each hundred";
  }
  EXPECT_GT(pauses, 0) << "a store that refuses every row is not asked all the time";
}

TEST_F(FireTest, ALaneIsNotFiredInSmallPartsBecauseOfAnother) {
  for (Shard shard = 0; shard < 2; ++shard) shared().due.push_backlog({{shard, 3}, kStart});
  std::map<Shard, std::vector<int>> limits;
  store.on_fire_due = [&](Lane lane, auto, int limit) -> Result<std::vector<Fired>> {
    limits[lane.shard].push_back(limit);
    if (lane.shard == 0) return refused();
    return std::vector<Fired>{};
  };
  steps(4);
  ASSERT_FALSE(limits[1].empty());
  EXPECT_GE(limits[0].size(), 2U) << "in halves";
  EXPECT_EQ(limits[1].front(), limits[0].front());
}

// A bisection may last while the lease is lost or outcomes are stuck.
TEST_F(FireTest, TheRestOfARefusedBatchIsCheckedAgain) {
  BizType type = biz_type(3, "noop");
  type.drop_older_than = 10s;
  type.rate_per_s = 1000;
  const auto tokens = [&] {
    const std::size_t n = shared().flow->take(type, 1000, Pace::fresh, now).n;
    shared().flow->put_back(3, n, Pace::fresh, /*is_instant=*/true);
    return n;
  };
  ASSERT_EQ(tokens(), 0U) << "they come with time";
  BizType paused = type, changed = type;
  paused.paused = true;
  changed.handler_kind = "webhook";
  const std::function<void()> changes[] = {[&] { set_types({paused}); }, [&] { set_types({}); },
                                           [&] { set_types({changed}); }, [&] { now += 11s; }};
  for (const auto& change : changes) {
    SetUp();
    set_types({type});
    now += 1s;
    ASSERT_EQ(tokens(), 1000U);
    const WallTime due = db_now() - 1s;
    push_due({{1, 3, due}, {2, 3, due}, {3, 3, due}, {4, 3, due}});
    store.on_fire = [](auto) { return refused(); };
    step();
    step();  // two of them
    shared().membership.trust_until(now);
    ASSERT_EQ(step(), kWhenWoken);
    change();
    shared().membership.trust_until(MonoTime::max());
    store.on_fire = [](auto) {
      ADD_FAILURE();
      return std::vector<Fired>{};
    };
    store.on_claim = [](auto jobs, auto, auto&) {
      EXPECT_EQ(jobs.size(), 4U) << "the handler has changed";
      return std::vector<ClaimedJob>{};
    };
    steps(5);
    EXPECT_EQ(shared().known.size(), 0U);
    EXPECT_EQ(running(), 0U);
    now += 1s;
    EXPECT_EQ(tokens(), 1000U);
  }
}

// In parts every one of them waits as long, and at last a healthy row is passed over.
TEST_F(FireTest, ABatchThatMeetsATableLockIsLeftToTheScan) {
  push_due({{1, 3, kStart}, {2, 3, kStart}, {3, 3, kStart}});
  shared().due.push_backlog({{5, 3}, kStart});
  store.on_fire = [](auto) { return locked(); };
  store.on_fire_due = [](auto, auto, auto) { return locked(); };
  for (const int calls : {1, 2}) {
    EXPECT_EQ(step(), now + config.retry_pause);
    EXPECT_EQ(store.calls, calls);
  }
  EXPECT_EQ(step(), kWhenWoken);
  EXPECT_EQ(shared().known.size(), 0U);
  EXPECT_FALSE(shared().due.has_backlog({5, 3}));
}

TEST_F(FireTest, UnfiredJobsCountForNoRate) {
  BizType type = biz_type(3, "noop");
  type.rate_per_s = 2;
  set_types({type});
  const auto left = [&] { return shared().flow->take(type, 10, Pace::fresh, now).n; };
  ASSERT_EQ(left(), 0U);
  for (const bool is_backlog : {false, true}) {
    now += 1s;
    if (is_backlog)
      shared().due.push_backlog({{0, 3}, kStart});
    else
      push_due({{1, 3, kStart}, {2, 3, kStart}});
    store.on_fire = [](auto) { return unavailable(); };
    store.on_fire_due = [](auto, auto, auto) { return unavailable(); };
    step();
    EXPECT_EQ(left(), 2U) << is_backlog;
  }
  for (const bool is_backlog : {false, true}) {
    now += 1s;
    if (is_backlog)
      shared().due.push_backlog({{0, 3}, kStart});
    else
      push_due({{1, 3, kStart}, {2, 3, kStart}});
    store.on_fire = [](auto) { return refused(); };
    store.on_fire_due = [](auto, auto, auto) { return refused(); };
    store.on_scan = [](auto, auto&) { return unavailable(); };
    for (int i = 0; i < 5; ++i) step();
    EXPECT_EQ(left(), 2U) << "also of parts: " << is_backlog;
  }
  now += 1s;
  push_due({{1, 3, kStart}, {2, 3, kStart}});
  store.on_fire = [](auto) { return in_doubt(); };
  step();
  EXPECT_EQ(left(), 0U) << "it may have happened";
}

}  // namespace
}  // namespace tocsin

#include "bulk/bulk_runner.h"

#include <gtest/gtest.h>

#include "support/fake_bulk_store.h"

namespace tocsin {
namespace {

using namespace std::chrono_literals;

class BulkRunnerTest : public testing::Test {
 public:
  BulkRunnerTest() {
    store.now = kStart;
    BizType type;
    type.name = "order.unpaid";
    type.type_id = database.put_type(type, kStart).type.type_id;
    type_id = type.type_id;
  }

  void add_jobs(int n, Duration from_now = std::chrono::hours(1)) {
    std::vector<NewJob> jobs;
    for (int i = 0; i < n; ++i) {
      NewJob job;
      job.biz_id = "o-" + std::to_string(i);
      job.type_id = type_id;
      job.when = {kStart + from_now, {}};
      jobs.push_back(job);
    }
    ASSERT_TRUE(database.create(jobs, CreateMode::all_or_nothing, kStart));
  }

  Bulk start(BulkAction action, std::optional<double> rate = {}) {
    BulkRequest request;
    request.action = action;
    request.filter.type_id = type_id;
    request.rate_per_s = rate;
    return *store.start(request, *store.count(request), 1, BulkRunner::kLease);
  }

  // Steps until the runner wants to wait; returns until when.
  MonoTime run(MonoTime now, BulkRunner& who) {
    while (true) {
      const MonoTime next = who.step(now);
      if (next > now) return next;
    }
  }

  Bulk stored(std::int64_t id) { return **store.find(id); }

  static constexpr WallTime kStart = std::chrono::sys_days(std::chrono::year(2026) / 3 / 1);
  static constexpr MonoTime kNow{1h};
  FakeDatabase database{[this] { return store.now; }, 4};
  FakeBulkStore store{database};
  TypeId type_id = 0;
  std::vector<Candidate> due_soon;
  BulkRunner runner{1, {{0, &store}}, [this](const Candidate& job) { due_soon.push_back(job); }};
};

TEST_F(BulkRunnerTest, ChangesEveryMatchingJobOnce) {
  add_jobs(700);
  const Bulk bulk = start(BulkAction::cancel);
  ASSERT_TRUE(runner.take(bulk));
  run(kNow, runner);
  const Bulk ended = stored(bulk.bulk_id);
  EXPECT_EQ(ended.state, BulkState::done);
  EXPECT_EQ(ended.changed, 700);
  EXPECT_EQ(ended.missed(), 0);
  EXPECT_FALSE(runner.is_busy());
}

TEST_F(BulkRunnerTest, ChangesNoMoreThanWereCounted) {
  add_jobs(10);
  BulkRequest request;
  request.action = BulkAction::cancel;
  request.filter.type_id = type_id;
  const Bulk bulk = *store.start(request, 4, 1, BulkRunner::kLease);  // six have come to match since the count
  runner.take(bulk);
  run(kNow, runner);
  EXPECT_EQ(stored(bulk.bulk_id).state, BulkState::done);
  EXPECT_EQ(stored(bulk.bulk_id).changed, 4);
  EXPECT_EQ(std::ranges::count(database.list({}), JobStatus::pending, &Job::status), 6);
}

TEST_F(BulkRunnerTest, WhatNoLongerMatchesIsMissed) {
  add_jobs(10);
  const Bulk bulk = start(BulkAction::cancel);
  const auto jobs = database.list({});
  ASSERT_TRUE(database.cancel({jobs[0].job_id, jobs[1].job_id}, kStart));
  runner.take(bulk);
  run(kNow, runner);
  EXPECT_EQ(stored(bulk.bulk_id).changed, 8);
  EXPECT_EQ(stored(bulk.bulk_id).missed(), 2);
}

TEST_F(BulkRunnerTest, KeepsToItsRate) {
  add_jobs(100);
  const Bulk bulk = start(BulkAction::cancel, 10.0);
  runner.take(bulk);
  MonoTime now = kNow;
  for (int seconds = 1; seconds <= 10; ++seconds) {
    while (now < kNow + std::chrono::seconds(seconds) && runner.is_busy()) now = std::max(now, run(now, runner));
    const auto changed = *store.progress(bulk.bulk_id);
    EXPECT_LE(changed.changed, 10 * seconds + 2) << seconds;
  }
  run(now + 1s, runner);
  EXPECT_EQ(stored(bulk.bulk_id).changed, 100);
}

TEST_F(BulkRunnerTest, AStopEndsItWithDefiniteNumbers) {
  add_jobs(100);
  const Bulk bulk = start(BulkAction::cancel, 10.0);
  runner.take(bulk);
  MonoTime now = run(kNow, runner), stepped = kNow;
  ASSERT_TRUE(store.request_stop(bulk.bulk_id));
  while (runner.is_busy()) {
    stepped = now;
    now = std::max(now, run(now, runner));
  }
  const Bulk ended = stored(bulk.bulk_id);
  EXPECT_EQ(ended.state, BulkState::stopped);
  EXPECT_GT(ended.changed, 0);
  EXPECT_EQ(ended.changed + ended.missed(), 100);
  EXPECT_LE(stepped, kNow + 2s);
}

TEST_F(BulkRunnerTest, AnotherNodeGoesOnWhereTheFirstEnded) {
  add_jobs(100);
  const Bulk bulk = start(BulkAction::cancel, 20.0);
  runner.take(bulk);
  run(kNow, runner);
  const auto before = store.progress(bulk.bulk_id)->changed;
  ASSERT_GT(before, 0);
  store.now = kStart + BulkRunner::kLease + 1s;  // the first node has ended
  BulkRunner other{2, {{0, &store}}, [](const Candidate&) {}};
  MonoTime now = kNow;
  run(now, other);
  ASSERT_TRUE(other.is_busy());
  while (other.is_busy()) now = std::max(now, run(now, other));
  EXPECT_EQ(stored(bulk.bulk_id).state, BulkState::done);
  EXPECT_EQ(stored(bulk.bulk_id).changed, 100);
}

TEST_F(BulkRunnerTest, ALostLeaseEndsTheWork) {
  add_jobs(100);
  const Bulk bulk = start(BulkAction::cancel, 20.0);
  runner.take(bulk);
  run(kNow, runner);
  store.now = kStart + BulkRunner::kLease + 1s;
  ASSERT_TRUE(*store.take_over(2, BulkRunner::kLease));
  run(kNow + 2s, runner);
  EXPECT_FALSE(runner.is_busy());
  EXPECT_EQ(stored(bulk.bulk_id).state, BulkState::running);
}

TEST_F(BulkRunnerTest, ADatabaseThatIsAwayDelaysItOnly) {
  add_jobs(10);
  const Bulk bulk = start(BulkAction::cancel);
  runner.take(bulk);
  store.fails = ErrorCode::unavailable;
  const MonoTime again = run(kNow, runner);
  EXPECT_GT(again, kNow);
  EXPECT_TRUE(runner.is_busy());
  store.fails.reset();
  run(again, runner);
  EXPECT_EQ(stored(bulk.bulk_id).changed, 10);
}

}  // namespace
}  // namespace tocsin

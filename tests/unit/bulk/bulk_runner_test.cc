#include "bulk/bulk_runner.h"

#include <gtest/gtest.h>

#include <set>

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
    return store.start(request, *store.count(request), 1, BulkRunner::kLease, "0")->value();
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
  BulkRunner runner{1, {{0, &store}}, {[this](const Candidate& job) { due_soon.push_back(job); }}};
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

// A bulk that stops after as many changes as it counted would leave counted jobs unchanged, with `missed` 0.
TEST_F(BulkRunnerTest, ChangesAlsoJobsThatHaveComeToMatchSinceTheCount) {
  add_jobs(700);
  BulkRequest request;
  request.action = BulkAction::cancel;
  request.filter.type_id = type_id;
  const Bulk bulk = store.start(request, 4, 1, BulkRunner::kLease, "0")->value();
  runner.take(bulk);
  run(kNow, runner);
  EXPECT_EQ(stored(bulk.bulk_id).state, BulkState::done);
  EXPECT_EQ(stored(bulk.bulk_id).changed, 700);
  EXPECT_EQ(stored(bulk.bulk_id).missed(), 0);
  EXPECT_EQ(std::ranges::count(database.list({}), JobStatus::pending, &Job::status), 0);
}

TEST_F(BulkRunnerTest, JobsThatNoLongerMatchAreMissed) {
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
  EXPECT_EQ(store.run_batch(bulk, 10)->changed, ended.changed) << "by a node that was thought dead";
}

TEST_F(BulkRunnerTest, AnotherNodeContinuesWhereTheFirstEnded) {
  add_jobs(100);
  const Bulk bulk = start(BulkAction::cancel, 20.0);
  runner.take(bulk);
  run(kNow, runner);
  const auto before = store.progress(bulk.bulk_id)->changed;
  ASSERT_GT(before, 0);
  store.now = kStart + BulkRunner::kLease + 1s;  // the first node has ended
  BulkRunner other{2, {{0, &store}}, {[](const Candidate&) {}}};
  MonoTime now = kNow;
  run(now, other);
  ASSERT_TRUE(other.is_busy());
  while (other.is_busy()) now = std::max(now, run(now, other));
  EXPECT_EQ(stored(bulk.bulk_id).state, BulkState::done);
  EXPECT_EQ(stored(bulk.bulk_id).changed, 100);
}

TEST_F(BulkRunnerTest, AnotherNodeNoticesWithinSecondsOfTheEndOfTheLease) {
  add_jobs(3);
  const Bulk bulk = start(BulkAction::cancel);  // by a node that is killed
  BulkRunner other{2, {{0, &store}}, {[](const Candidate&) {}}};
  MonoTime now = run(kNow, other);
  while (stored(bulk.bulk_id).state == BulkState::running && now < kNow + 1h) {
    store.now = kStart + (now - kNow);
    now = run(now, other);
  }
  EXPECT_EQ(stored(bulk.bulk_id).state, BulkState::done);
  EXPECT_LE(store.now, kStart + BulkRunner::kLease + 5s);
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

TEST_F(BulkRunnerTest, AnUnavailableDatabaseOnlyDelaysIt) {
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

TEST_F(BulkRunnerTest, ReportsWhyAJobWasLeftOutAndEnds) {
  add_jobs(10);
  const Bulk bulk = start(BulkAction::cancel);
  database.refuse(database.list({}).front().job_id);
  std::vector<Error> failures;
  BulkRunner reporting{
      1, {{0, &store}}, {[](const Candidate&) {}, [&](DatabaseId, const Error& error) { failures.push_back(error); }}};
  reporting.take(bulk);
  run(kNow, reporting);
  EXPECT_EQ(stored(bulk.bulk_id).state, BulkState::done);
  EXPECT_EQ(stored(bulk.bulk_id).missed(), 1);
  EXPECT_EQ(failures.size(), 2U) << "one per visit";
}

TEST_F(BulkRunnerTest, ReportsWhatDelaysIt) {
  add_jobs(700);
  std::vector<ErrorCode> failures;
  BulkRunner reporting{
      1,
      {{0, &store}},
      {[](const Candidate&) {}, [&](DatabaseId, const Error& error) { failures.push_back(error.code); }}};
  reporting.take(start(BulkAction::cancel));
  reporting.step(kNow);  // the first batch
  store.fails = ErrorCode::conflict;
  run(kNow, reporting);
  EXPECT_EQ(failures, std::vector{ErrorCode::conflict});
}

class BulkOfTwo : public BulkRunnerTest {
 public:
  BulkOfTwo() {
    second.now = kStart;
    BizType type;
    type.name = "order.unpaid";
    EXPECT_EQ(other_database.put_type(type, kStart).type.type_id, type_id);
  }
  void add_jobs_to_both(int n) {
    add_jobs(n);
    for (int i = 0; i < n; ++i) {
      NewJob job;
      job.biz_id = "p-" + std::to_string(i);
      job.type_id = type_id;
      job.when = {kStart + 1h, {}};
      ASSERT_TRUE(other_database.create({job}, CreateMode::all_or_nothing, kStart));
    }
  }
  Bulk start_in_both(BulkAction action, std::optional<double> rate = {}) {
    BulkRequest request;
    request.action = action;
    request.filter.type_id = type_id;
    request.rate_per_s = rate;
    return store.start(request, *store.count(request) + *second.count(request), 1, BulkRunner::kLease, "0")->value();
  }
  std::int64_t cancelled_in(FakeDatabase& where) {
    return std::ranges::count(where.list({}), JobStatus::cancelled, &Job::status);
  }
  std::vector<BulkDatabase> both() { return {{0, &store}, {1, &second}}; }
  // Until it has ended, or waits for a database.
  void run_to_the_end(BulkRunner& who) {
    MonoTime now = kNow;
    for (int i = 0; i < 1000 && who.is_busy(); ++i) now = std::max(now, who.step(now));
  }

  FakeDatabase other_database{[this] { return second.now; }, 4};
  FakeBulkStore second{other_database};
  BulkRunner of_both{1, {{0, &store}, {1, &second}}, {[](const Candidate&) {}}};
};

TEST_F(BulkOfTwo, TheNumbersOfBothDatabasesAddUp) {
  add_jobs_to_both(70);
  const Bulk bulk = start_in_both(BulkAction::cancel);
  of_both.take(bulk);
  run_to_the_end(of_both);
  EXPECT_EQ(stored(bulk.bulk_id).state, BulkState::done);
  EXPECT_EQ(stored(bulk.bulk_id).changed, 140);
  EXPECT_EQ(stored(bulk.bulk_id).missed(), 0);
  EXPECT_EQ(cancelled_in(database), 70);
  EXPECT_EQ(cancelled_in(other_database), 70);
}

TEST_F(BulkOfTwo, TheRateIsThatOfBothTogether) {
  add_jobs_to_both(20);
  const Bulk bulk = start_in_both(BulkAction::cancel, 10.0);
  of_both.take(bulk);
  MonoTime now = kNow;
  for (int seconds = 1; seconds <= 4; ++seconds) {
    while (now < kNow + std::chrono::seconds(seconds) && of_both.is_busy()) now = std::max(now, run(now, of_both));
    EXPECT_LE(cancelled_in(database) + cancelled_in(other_database), 10 * seconds + 2) << seconds;
  }
  run_to_the_end(of_both);
  EXPECT_EQ(stored(bulk.bulk_id).changed, 40);
}

TEST_F(BulkOfTwo, ADatabaseThatIsDownDelaysItsOwnJobsOnly) {
  add_jobs_to_both(10);
  const Bulk bulk = start_in_both(BulkAction::cancel);
  of_both.take(bulk);
  while (cancelled_in(database) < 10) of_both.step(kNow);
  second.fails = ErrorCode::unavailable;
  const MonoTime again = run(kNow, of_both);
  EXPECT_TRUE(of_both.is_busy());
  second.fails.reset();
  run(again, of_both);
  EXPECT_EQ(stored(bulk.bulk_id).state, BulkState::done);
  EXPECT_EQ(stored(bulk.bulk_id).changed, 20);
}

TEST_F(BulkOfTwo, AStopWaitsForADatabaseThatIsDownForABoundedTimeOnly) {
  add_jobs_to_both(10);
  std::vector<DatabaseId> failed;
  BulkRunner reporting{
      1, both(), {[](const Candidate&) {}, [&](DatabaseId id, const Error&) { failed.push_back(id); }}};
  const Bulk bulk = start_in_both(BulkAction::cancel);
  reporting.take(bulk);
  while (cancelled_in(database) < 10) reporting.step(kNow);
  second.fails = ErrorCode::unavailable;
  ASSERT_TRUE(store.request_stop(bulk.bulk_id));
  MonoTime now = kNow + 2s;
  while (reporting.is_busy() && now < kNow + 1h) now = run(now, reporting);
  EXPECT_EQ(stored(bulk.bulk_id).state, BulkState::stopped);
  EXPECT_EQ(stored(bulk.bulk_id).changed, 10);
  EXPECT_LT(now, kNow + 1min);
  EXPECT_EQ(std::set(failed.begin(), failed.end()), std::set<DatabaseId>{1});
}

TEST_F(BulkOfTwo, ANodeThatTakesOverStopsAlsoWhileADatabaseIsDown) {
  add_jobs_to_both(10);
  const Bulk bulk = start_in_both(BulkAction::cancel);
  ASSERT_TRUE(store.run_batch(bulk, 3));
  ASSERT_TRUE(store.keep(bulk.bulk_id, 1, 3, BulkRunner::kLease));
  store.now += BulkRunner::kLease + 1s;  // its node has died
  second.fails = ErrorCode::unavailable;
  ASSERT_TRUE(store.request_stop(bulk.bulk_id));
  BulkRunner other{2, both(), {[](const Candidate&) {}}};
  MonoTime now = run(kNow, other);
  while (other.is_busy() && now < kNow + 1h) now = run(now, other);
  EXPECT_EQ(stored(bulk.bulk_id).state, BulkState::stopped);
  EXPECT_EQ(stored(bulk.bulk_id).changed, 3);
  EXPECT_LT(now, kNow + 1min);
}

TEST_F(BulkOfTwo, FailsWithDefiniteNumbersWhenOneRefusesItsValues) {
  add_jobs_to_both(10);
  const Bulk bulk = start_in_both(BulkAction::cancel);
  of_both.take(bulk);
  while (cancelled_in(database) < 10) of_both.step(kNow);
  second.fails = ErrorCode::invalid;
  run_to_the_end(of_both);
  EXPECT_EQ(stored(bulk.bulk_id).state, BulkState::failed);
  EXPECT_EQ(stored(bulk.bulk_id).changed, 10);
  EXPECT_EQ(stored(bulk.bulk_id).missed(), 10);
}

TEST_F(BulkOfTwo, ReportsWhichDatabaseHasFailed) {
  add_jobs_to_both(10);
  std::vector<DatabaseId> failed;
  BulkRunner reporting{
      1, both(), {[](const Candidate&) {}, [&](DatabaseId id, const Error&) { failed.push_back(id); }}};
  reporting.take(start_in_both(BulkAction::cancel));
  while (cancelled_in(database) < 10) reporting.step(kNow);
  second.fails = ErrorCode::invalid;
  run_to_the_end(reporting);
  EXPECT_EQ(failed, std::vector<DatabaseId>{1});
}

TEST_F(BulkOfTwo, AnOperationThatNoNodeRunsStopsWithTheNumbersOfBoth) {
  add_jobs_to_both(10);
  const Bulk bulk = start_in_both(BulkAction::cancel);
  ASSERT_TRUE(store.run_batch(bulk, 3));
  ASSERT_TRUE(second.run_batch(bulk, 4));
  EXPECT_EQ((*stop_bulk(both(), 2, bulk.bulk_id))->state, BulkState::running) << "node 1 has its lease";
  store.now += BulkRunner::kLease + 1s;  // and has died
  const Bulk ended = **stop_bulk(both(), 2, bulk.bulk_id);
  EXPECT_EQ(ended.state, BulkState::stopped);
  EXPECT_EQ(ended.changed, 7);
  EXPECT_EQ(ended.missed(), 13);
  EXPECT_EQ(second.run_batch(bulk, 10)->changed, 4) << "a batch of the node that was thought dead";
  EXPECT_FALSE(*stop_bulk(both(), 2, 4711));
}

TEST_F(BulkOfTwo, AStopThatOneDatabaseDoesNotAnswerIsKept) {
  add_jobs_to_both(10);
  const Bulk bulk = start_in_both(BulkAction::cancel);
  store.now += BulkRunner::kLease + 1s;
  second.fails = ErrorCode::unavailable;
  EXPECT_TRUE((*stop_bulk(both(), 2, bulk.bulk_id))->is_stop_requested);
  EXPECT_EQ(stored(bulk.bulk_id).state, BulkState::running);
  second.fails.reset();
  store.now += BulkRunner::kLease + 1s;
  BulkRunner other{3, both(), {[](const Candidate&) {}}};
  run(kNow, other);
  run_to_the_end(other);
  EXPECT_EQ(stored(bulk.bulk_id).state, BulkState::stopped);
  EXPECT_EQ(stored(bulk.bulk_id).changed, 0);
}

}  // namespace
}  // namespace tocsin

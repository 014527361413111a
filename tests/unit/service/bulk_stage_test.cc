#include "service/bulk_stage.h"

#include <gtest/gtest.h>

#include "support/fake_bulk_store.h"

namespace tocsin {
namespace {

using namespace std::chrono_literals;

class BulkStageTest : public testing::Test {
 public:
  BulkStageTest() {
    store.now = kStart;
    BizType type;
    type.name = "order.unpaid";
    request.filter.type_id = database.put_type(type, kStart).type.type_id;
  }

  // Starts a cancel of n jobs by a request.
  std::int64_t start(int n) {
    std::vector<NewJob> jobs;
    for (int i = 0; i < n; ++i) {
      NewJob job;
      job.biz_id = "o-" + std::to_string(i);
      job.type_id = *request.filter.type_id;
      job.when = {kStart + 1h, {}};
      jobs.push_back(job);
    }
    EXPECT_TRUE(database.create(jobs, CreateMode::all_or_nothing, kStart));
    const Bulk bulk = store.start(request, n, 1, BulkRunner::kLease, "0")->value();
    EXPECT_TRUE(stage.post([bulk](BulkAccess& access) { EXPECT_TRUE(access.runner.take(bulk)); }));
    return bulk.bulk_id;
  }
  // Always leaves a request in the queue, as callers do that ask again once they have their answer.
  void ask_again() {
    EXPECT_TRUE(stage.post([this](BulkAccess&) {
      ++answered;
      ask_again();
    }));
  }
  void step(int n, MonoTime now = kNow) {
    for (int i = 0; i < n; ++i) stage.step(now);
  }
  Bulk stored(std::int64_t id) { return **store.find(id); }

  static constexpr WallTime kStart = std::chrono::sys_days(std::chrono::year(2026) / 3 / 1);
  static constexpr MonoTime kNow{1h};
  FakeDatabase database{[this] { return store.now; }, 4};
  FakeBulkStore store{database};
  BulkRequest request;
  int answered = 0;
  BulkStage stage{1, {{0, &store}}, {[](const Candidate&) {}}};
};

TEST_F(BulkStageTest, AQueueThatIsNeverEmptyDoesNotStopTheOperation) {
  const std::int64_t id = start(900);
  ask_again();
  step(100);
  EXPECT_EQ(stored(id).state, BulkState::done);
  EXPECT_EQ(stored(id).changed, 900);
  EXPECT_GE(answered, 40);
}

TEST_F(BulkStageTest, AStopIsObeyedBesideAQueueThatIsNeverEmpty) {
  request.rate_per_s = 10;
  const std::int64_t id = start(900);
  ask_again();
  step(20);
  ASSERT_TRUE(store.request_stop(id));
  step(20, kNow + 2s);
  EXPECT_EQ(stored(id).state, BulkState::stopped);
}

TEST_F(BulkStageTest, ARequestWaitsForOneBatchAtMost) {
  const std::int64_t id = start(900);
  step(2);
  ASSERT_TRUE(stage.post([this](BulkAccess&) { ++answered; }));
  ASSERT_TRUE(stage.post([this](BulkAccess&) { ++answered; }));
  step(1);
  EXPECT_EQ(answered, 1);
  step(2);
  EXPECT_EQ(answered, 2);
  EXPECT_EQ(stored(id).state, BulkState::running);
}

TEST_F(BulkStageTest, RequestsDoNotShortenThePauseAfterAFailure) {
  const std::int64_t id = start(5);
  step(1);
  store.fails = ErrorCode::unavailable;
  step(1);
  store.fails.reset();
  ask_again();
  step(20);
  EXPECT_EQ(stored(id).state, BulkState::running);
  EXPECT_GE(answered, 20);
  step(20, kNow + 1s);
  EXPECT_EQ(stored(id).state, BulkState::done);
}

TEST_F(BulkStageTest, WaitsForTheRunnerWhenNoRequestWaits) {
  EXPECT_GT(stage.step(kNow), kNow);
  ASSERT_TRUE(stage.post([this](BulkAccess&) { ++answered; }));
  EXPECT_EQ(stage.step(kNow), kNow) << "more requests may wait";
  EXPECT_GT(stage.step(kNow), kNow);
  EXPECT_EQ(answered, 1);
}

TEST_F(BulkStageTest, AcceptsNoRequestWhenItIsFullOrClosed) {
  for (std::size_t i = 0; i < BulkStage::kMostRequests; ++i) ASSERT_TRUE(stage.post([](BulkAccess&) {}));
  EXPECT_FALSE(stage.post([](BulkAccess&) {}));
  step(1);
  stage.close();
  EXPECT_FALSE(stage.post([](BulkAccess&) {}));
}

}  // namespace
}  // namespace tocsin

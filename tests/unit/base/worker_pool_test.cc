#include "base/worker_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <latch>
#include <vector>

namespace tocsin {
namespace {

using namespace std::chrono_literals;

TEST(WorkerPool, RunsEveryTaskThatItAccepts) {
  std::atomic<int> n = 0;
  WorkerPool pool(4, 1000);
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(pool.try_run([&] { ++n; }));
  EXPECT_TRUE(pool.stop(60s));
  EXPECT_EQ(n, 1000);
}

TEST(WorkerPool, RunsAsManyAtOnceAsItHasThreads) {
  WorkerPool pool(3, 3);
  std::latch all_running(3);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(pool.try_run([&] { all_running.arrive_and_wait(); }));
  EXPECT_TRUE(pool.stop(60s));
}

TEST(WorkerPool, RefusesWhenFullAndWhenStopped) {
  WorkerPool pool(1, 1);
  std::promise<void> begun, release;
  ASSERT_TRUE(pool.try_run([&] {
    begun.set_value();
    release.get_future().wait();
  }));
  begun.get_future().wait();
  EXPECT_TRUE(pool.try_run([] {}));
  EXPECT_FALSE(pool.try_run([] {}));
  release.set_value();
  EXPECT_TRUE(pool.stop(60s));
  EXPECT_FALSE(pool.try_run([] {}));
}

TEST(WorkerPool, LeavesATaskThatOverrunsItsGraceAndDiscardsTheRest) {
  auto begun = std::make_shared<std::promise<void>>();
  auto release = std::make_shared<std::promise<void>>();
  auto ended = std::make_shared<std::promise<void>>();
  bool has_run = false;
  {
    WorkerPool pool(1, 1);
    ASSERT_TRUE(pool.try_run([begun, release, ended] {
      begun->set_value();
      release->get_future().wait();
      ended->set_value();
    }));
    begun->get_future().wait();
    ASSERT_TRUE(pool.try_run([&] { has_run = true; }));
    EXPECT_FALSE(pool.stop(0s));
  }
  release->set_value();
  ended->get_future().wait();
  EXPECT_FALSE(has_run);
}

// Blocks the threads it runs on until it is released.
class Blocker {
 public:
  std::function<void()> task() {
    return [this] {
      ++running_;
      running_.notify_all();
      released_.wait(false);
    };
  }
  void wait_for(int n) {
    for (int now = running_; now < n; now = running_) running_.wait(now);
  }
  int running() const { return running_; }
  void release() {
    released_ = true;
    released_.notify_all();
  }

 private:
  std::atomic<int> running_ = 0;
  std::atomic<bool> released_ = false;
};

TEST(WorkerPool, ABlockedLaneDelaysNoOther) {
  WorkerPool pool(2, 10, 3);
  Blocker first, second;
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(pool.try_run(1, first.task()));
  first.wait_for(2);
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(pool.try_run(2, second.task()));
  second.wait_for(1);
  for (int i = 0; i < 5; ++i) {
    std::promise<void> done;
    ASSERT_TRUE(pool.try_run(3, [&] { done.set_value(); }));
    done.get_future().wait();
  }
  EXPECT_EQ(first.running(), 2) << "spare threads are for those who have none";
  EXPECT_EQ(second.running(), 1);
  first.release();
  second.release();
  EXPECT_TRUE(pool.stop(60s));
}

TEST(WorkerPool, LanesTakeTurns) {
  WorkerPool pool(1, 100);
  Blocker blocker;
  std::vector<int> order;
  ASSERT_TRUE(pool.try_run(9, blocker.task()));
  blocker.wait_for(1);
  for (int lane : {1, 1, 1, 1, 2, 2}) ASSERT_TRUE(pool.try_run(lane, [&order, lane] { order.push_back(lane); }));
  blocker.release();
  EXPECT_TRUE(pool.stop(60s));
  EXPECT_EQ(order, (std::vector<int>{1, 2, 1, 2, 1, 1}));
}

TEST(WorkerPool, AFullLaneLeavesCapacityForOthers) {
  WorkerPool pool(1, 1);
  Blocker blocker;
  ASSERT_TRUE(pool.try_run(1, blocker.task()));
  blocker.wait_for(1);
  EXPECT_TRUE(pool.try_run(1, [] {}));
  EXPECT_FALSE(pool.try_run(1, [] {}));
  EXPECT_TRUE(pool.try_run(2, [] {}));
  blocker.release();
  EXPECT_TRUE(pool.stop(60s));
}

// Lanes that come at the same moment: the one that no push woke a thread for must not wait for the one that blocks.
TEST(WorkerPool, SpareThreadsRunLanesThatArriveTogether) {
  for (int round = 0; round < 200; ++round) {
    WorkerPool pool(1, 10, 4);
    Blocker blocker;
    std::promise<void> done;
    ASSERT_TRUE(pool.try_run(1, blocker.task()));
    ASSERT_TRUE(pool.try_run(2, blocker.task()));
    ASSERT_TRUE(pool.try_run(3, [&] { done.set_value(); }));
    done.get_future().wait();
    blocker.wait_for(2);
    blocker.release();
    EXPECT_TRUE(pool.stop(60s));
  }
}

TEST(WorkerPool, EndsAtOnceWhenIdle) {
  WorkerPool pool(4, 1);
  EXPECT_TRUE(pool.stop(0s));
}

}  // namespace
}  // namespace tocsin

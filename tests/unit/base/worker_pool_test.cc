#include "base/worker_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <latch>

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

TEST(WorkerPool, EndsAtOnceWhenIdle) {
  WorkerPool pool(4, 1);
  EXPECT_TRUE(pool.stop(0s));
}

}  // namespace
}  // namespace tocsin

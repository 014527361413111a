#include "base/worker_thread.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>

namespace tocsin {
namespace {

TEST(WorkerThreads, RunsUntilItIsStopped) {
  WorkerThread worker;
  std::atomic<int> rounds = 0;
  worker.start("rounds", [&] {
    while (worker.wait()) ++rounds;
  });
  worker.wake();
  while (rounds == 0) std::this_thread::yield();
  worker.stop();
  EXPECT_TRUE(worker.is_stopping());
  const int last = rounds;
  worker.wake();
  worker.stop();
  EXPECT_EQ(rounds, last);
}

TEST(WorkerThreads, AWakeBeforeTheWaitIsNotLost) {
  WorkerThread worker;
  worker.wake();
  EXPECT_TRUE(worker.wait());
  EXPECT_TRUE(worker.wait_for(std::chrono::microseconds(1)));  // the time is over: not a stop
}

TEST(WorkerThreads, AStopEndsEveryWaitAndStays) {
  WorkerThread worker;
  worker.request_stop();
  EXPECT_FALSE(worker.wait());
  EXPECT_FALSE(worker.wait_for(std::chrono::hours(1)));
  EXPECT_FALSE(worker.wait());
  worker.stop();  // never started
}

TEST(WorkerThreads, TheDestructorStops) {
  std::atomic<bool> has_ended = false;
  {
    WorkerThread worker;
    worker.start("ends", [&] {
      while (worker.wait_for(std::chrono::hours(1))) {
      }
      has_ended = true;
    });
  }
  EXPECT_TRUE(has_ended);
}

}  // namespace
}  // namespace tocsin

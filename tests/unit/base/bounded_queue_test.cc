#include "base/bounded_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <numeric>
#include <thread>

#include "support/counting_waker.h"

namespace tocsin {
namespace {

TEST(BoundedQueue, GivesItemsInTheOrderTheyCame) {
  BoundedQueue<int> queue(10);
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(queue.try_push(int{i}));
  EXPECT_EQ(queue.pop_some(3), (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(queue.pop_some(100), (std::vector<int>{3, 4, 5, 6, 7, 8, 9}));
  EXPECT_TRUE(queue.pop_some(1).empty());
}

TEST(BoundedQueue, RefusesWhenFullAndLeavesTheItemAlone) {
  BoundedQueue<std::unique_ptr<int>> queue(1);
  ASSERT_TRUE(queue.try_push(std::make_unique<int>(1)));
  auto second = std::make_unique<int>(2);
  EXPECT_FALSE(queue.try_push(std::move(second)));
  ASSERT_TRUE(second);
  EXPECT_EQ(queue.pop_some(1).size(), 1U);
  EXPECT_TRUE(queue.try_push(std::move(second)));
}

TEST(BoundedQueue, TakesAsManyAsFit) {
  BoundedQueue<int> queue(3);
  std::vector<int> items{1, 2, 3, 4, 5};
  EXPECT_EQ(queue.push_some(items), 3U);
  EXPECT_EQ(queue.push_some(items), 0U);
  EXPECT_EQ(queue.size(), 3U);
  EXPECT_EQ(queue.pop_some(10), (std::vector<int>{1, 2, 3}));
}

TEST(BoundedQueue, WakesItsConsumerForEveryPushOfItems) {
  CountingWaker waker;
  BoundedQueue<int> queue(2, &waker);
  std::vector<int> none, three{1, 2, 3};
  queue.push_some(none);
  EXPECT_EQ(waker.wakes, 0);
  queue.try_push(1);
  queue.push_some(three);
  EXPECT_EQ(waker.wakes, 2);
  EXPECT_FALSE(queue.try_push(1));
  EXPECT_EQ(waker.wakes, 2);
}

TEST(BoundedQueue, LosesNothingBetweenManyThreads) {
  constexpr int kItems = 20'000;
  BoundedQueue<int> queue(64);
  std::atomic<std::int64_t> sum = 0;
  std::atomic<int> taken = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      for (int i = t; i < kItems; i += 2) {
        while (!queue.try_push(int{i})) std::this_thread::yield();
      }
    });
    threads.emplace_back([&] {
      while (taken < kItems) {
        const auto items = queue.pop_some(10);
        sum += std::accumulate(items.begin(), items.end(), std::int64_t{0});
        taken += static_cast<int>(items.size());
        if (items.empty()) std::this_thread::yield();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(sum, std::int64_t{kItems} * (kItems - 1) / 2);
  EXPECT_EQ(queue.size(), 0U);
}

}  // namespace
}  // namespace tocsin

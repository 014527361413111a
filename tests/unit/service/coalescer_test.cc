#include "service/coalescer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <latch>
#include <numeric>
#include <span>

#include "base/system_clock.h"
#include "support/manual_clock.h"

namespace tocsin {
namespace {

const SystemClock real_clock;

// What it flushes to is never asked for its database here.
using Batches = std::vector<std::vector<int>>;

std::vector<int> all_of(const Batches& batches) {
  std::vector<int> all;
  for (const auto& batch : batches) all.insert(all.end(), batch.begin(), batch.end());
  return all;
}

// The batches of items of which all but the first come while the first is flushed.
Batches batches_of(const std::vector<int>& items, std::size_t batch_size, Coalescer<int>::Weight weight = {}) {
  std::latch first_flush_begun(1), rest_pushed(1), all_flushed(static_cast<std::ptrdiff_t>(items.size()));
  Batches batches;
  const ManualClock still;  // the first flush is never so slow that the second writer helps
  const auto flush = [&](PgClientStore&, std::vector<int> batch) {
    const auto n = static_cast<std::ptrdiff_t>(batch.size());
    batches.push_back(std::move(batch));
    if (batches.size() == 1) {
      first_flush_begun.count_down();
      rest_pushed.wait();
    }
    all_flushed.count_down(n);
  };
  Coalescer<int> coalescer({}, 1, still, 100, batch_size, flush, std::move(weight));
  EXPECT_TRUE(coalescer.push(items.front()));
  first_flush_begun.wait();
  for (const int item : std::span(items).subspan(1)) EXPECT_TRUE(coalescer.push(item));
  rest_pushed.count_down();
  all_flushed.wait();  // once it stops, both writers write
  return batches;
}

TEST(Coalescer, RequestsDuringAFlushShareTheNextOne) {
  std::vector<int> items(61);
  std::iota(items.begin(), items.end(), 0);
  const Batches batches = batches_of(items, 50);
  ASSERT_EQ(batches.size(), 3U);
  EXPECT_EQ(batches[0].size(), 1U);
  EXPECT_EQ(batches[1].size(), 50U) << "no more than a batch holds";
  EXPECT_EQ(batches[2].size(), 10U);
  EXPECT_TRUE(std::ranges::is_sorted(all_of(batches))) << "in the order they came";
}

TEST(Coalescer, ABatchEndsBeforeItWeighsTooMuch) {
  const auto weight = [](int item) { return static_cast<std::size_t>(item); };
  const Batches batches = batches_of({1, 4, 6, 1, 11, 1, 1, 1, 1}, 4, {weight, 10});
  const Batches expected = {{1}, {4, 6}, {1}, {11}, {1, 1, 1, 1}};
  EXPECT_EQ(batches, expected) << "one that weighs more than a batch may is alone";
}

TEST(Coalescer, ASecondWriterHelpsWhenManyWait) {
  std::latch first_flush_begun(1), second_flush_begun(1);
  std::atomic<int> flushes = 0;
  Coalescer<int> coalescer({}, 1, real_clock, 1000, 500, [&](PgClientStore&, std::vector<int>) {
    if (flushes++ == 0) {
      first_flush_begun.count_down();
      second_flush_begun.wait();  // would wait for ever if the first were alone
    } else if (flushes == 2) {
      second_flush_begun.count_down();
    }
  });
  ASSERT_TRUE(coalescer.push(0));
  first_flush_begun.wait();
  for (int i = 1; i <= 200; ++i) ASSERT_TRUE(coalescer.push(i));
  second_flush_begun.wait();
}

TEST(Coalescer, ASecondWriterHelpsWhenTheFirstIsStuck) {
  std::latch first_flush_begun(1), second_flush_begun(1);
  std::atomic<int> flushes = 0;
  Coalescer<int> coalescer({}, 1, real_clock, 1000, 500, [&](PgClientStore&, std::vector<int>) {
    if (flushes++ == 0) {
      first_flush_begun.count_down();
      second_flush_begun.wait();  // as behind a lock that somebody keeps
    } else {
      second_flush_begun.count_down();
    }
  });
  ASSERT_TRUE(coalescer.push(0));
  first_flush_begun.wait();
  ASSERT_TRUE(coalescer.push(1));
  second_flush_begun.wait();
}

TEST(Coalescer, RefusesWhenFullAndAfterItsEnd) {
  std::latch begun(1), release(1);
  std::atomic<int> flushed = 0;
  Coalescer<int> coalescer({}, 1, real_clock, 2, 10, [&](PgClientStore&, std::vector<int> batch) {
    if (flushed == 0) {
      begun.count_down();
      release.wait();
    }
    flushed += static_cast<int>(batch.size());
  });
  ASSERT_TRUE(coalescer.push(1));
  begun.wait();
  EXPECT_TRUE(coalescer.push(2));
  EXPECT_TRUE(coalescer.push(3));
  EXPECT_FALSE(coalescer.push(4));
  release.count_down();
  coalescer.stop();
  EXPECT_EQ(flushed, 3);
  EXPECT_FALSE(coalescer.push(5));
}

TEST(Coalescer, EndsOnlyAfterAllAcceptedItemsAreFlushed) {
  std::atomic<int> flushed = 0;
  Coalescer<int> coalescer({}, 1, real_clock, 10'000, 7,
                           [&](PgClientStore&, std::vector<int> batch) { flushed += static_cast<int>(batch.size()); });
  int taken = 0;
  for (int i = 0; i < 5000; ++i) taken += coalescer.push(i);
  coalescer.stop();
  EXPECT_EQ(taken, 5000);
  EXPECT_EQ(flushed, taken);
}

}  // namespace
}  // namespace tocsin

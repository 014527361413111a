#include "maintenance/report_buffer.h"

#include <gtest/gtest.h>

namespace tocsin {
namespace {

using namespace std::chrono_literals;

class ReportBufferTest : public testing::Test {
 protected:
  ReportBufferTest() {
    BizType type;
    type.type_id = 7;
    type.name = "order.unpaid";
    type.slo = Slo{100ms, 0.99};
    catalog_ = std::make_shared<TypeCatalog>(std::vector<BizType>{type});
  }

  WallTime now{500'000h};
  bool has_clock = true;
  ReportBuffer buffer{[this]() -> std::optional<ReportBuffer::Context> {
    if (!has_clock) return {};
    return ReportBuffer::Context{now, catalog_};
  }};

 private:
  std::shared_ptr<const TypeCatalog> catalog_;
};

TEST_F(ReportBufferTest, StartsAreCountedInTheQuarterOfAnHourTheyHappenIn) {
  buffer.started(7, 5ms);
  now += 14min + 59s;
  buffer.started(7, 101ms);
  now += 1s;
  buffer.started(7, -3ms);
  const auto taken = buffer.take();
  ASSERT_EQ(taken.size(), 2U);
  EXPECT_EQ(taken[0].slot, WallTime(500'000h));
  EXPECT_EQ(taken[0].n, 2);
  EXPECT_EQ(taken[0].missed, 1) << "later than the target of 100 ms";
  EXPECT_EQ(taken[0].max, 101ms);
  EXPECT_EQ(taken[0].buckets.size(), 2U);
  EXPECT_EQ(taken[1].slot, WallTime(500'000h + 15min));
  EXPECT_EQ(taken[1].max, 0ms) << "a job that was told to run at once is not late";
  EXPECT_TRUE(buffer.take().empty());
}

TEST_F(ReportBufferTest, AStartOnTheTargetIsWithinIt) {
  buffer.started(7, 100ms);
  EXPECT_EQ(buffer.take().at(0).missed, 0);
}

TEST_F(ReportBufferTest, DurationsAreKeptApartByEnding) {
  buffer.ended(7, EventSink::Ending::done, 5ms);
  buffer.ended(7, EventSink::Ending::retry, 6ms);
  buffer.ended(7, EventSink::Ending::dead, 7ms);
  const auto taken = buffer.take();
  ASSERT_EQ(taken.size(), 3U);
  EXPECT_EQ(taken[0].kind, ReportKind::done);
  EXPECT_EQ(taken[1].kind, ReportKind::dead);
  EXPECT_EQ(taken[2].kind, ReportKind::retry);
}

TEST_F(ReportBufferTest, IsBoundedWhileTheDatabaseDoesNotAnswer) {
  for (std::size_t type = 0; type < ReportBuffer::kMost + 10; ++type) buffer.started(static_cast<TypeId>(type), 1ms);
  buffer.started(0, 1ms);
  const auto taken = buffer.take();
  EXPECT_EQ(taken.size(), ReportBuffer::kMost);
  EXPECT_EQ(taken[0].n, 2) << "what has its place is still counted";
}

TEST_F(ReportBufferTest, WithoutTheDatabasesClockThereIsNoSlotToCountIn) {
  has_clock = false;
  buffer.started(7, 1ms);
  EXPECT_TRUE(buffer.take().empty());
}

}  // namespace
}  // namespace tocsin

// What a node may start: permits, rates, the room of handlers; and how several nodes share them.
#include <gtest/gtest.h>

#include "unit/pipeline/permits_fixture.h"

namespace tocsin {
namespace {

class FlowControlTest : public ::testing::Test {
 protected:
  std::size_t take(const BizType& type, std::size_t want, Pace pace = Pace::fresh) {
    return flow.take(type, want, pace, now).n;
  }
  FlowControl flow;
  MonoTime now{1h};
};

TEST_F(FlowControlTest, TypesWithoutALimitStartFreely) { EXPECT_EQ(take(biz_type(1), 1'000'000), 1'000'000U); }

TEST_F(FlowControlTest, ANodeAloneHasAllPermits) {
  EXPECT_EQ(take(limited(5), 3), 3U);
  EXPECT_EQ(take(limited(5), 3), 2U);
  EXPECT_EQ(take(limited(5), 3), 0U);
  flow.return_all(1, 1);
  EXPECT_EQ(take(limited(5), 3), 1U);
  EXPECT_EQ(take(limited(3), 3), 0U) << "lowered: none until enough have ended";
}

TEST_F(FlowControlTest, TheCapacityOfAStartPoolIsALimitToo) {
  BizType type = biz_type(1);
  type.pool = pool_of(4);
  EXPECT_EQ(take(type, 10), 4U);
  EXPECT_EQ(take(type, 10), 0U);
}

TEST_F(FlowControlTest, SharedPermitsHoldUntilTheirTimeAndForTheirLease) {
  flow.begin_sharing(nullptr);
  BizType type = limited(10);
  type.ttr = 30s;
  EXPECT_EQ(take(type, 5), 0U) << "none granted yet";
  flow.grant(1, Limit::running, {4, now + 5s, 30s, 10, 0, 4}, now);
  EXPECT_EQ(take(type, 5), 4U);
  flow.return_all(1, 4);
  type.ttr = 31s;
  EXPECT_EQ(take(type, 5), 0U) << "the store does not know of so long a lease";
  type.ttr = 30s;
  now += 5s;
  EXPECT_EQ(take(type, 5), 0U) << "the permits are over";
}

TEST_F(FlowControlTest, ReturnsWhenAPermitIsFree) {
  flow.begin_sharing(nullptr);
  int told = 0;
  flow.on_capacity([&] { ++told; });
  flow.grant(1, Limit::running, {1, now + 5s, 30s, 10, 0, 1}, now);
  EXPECT_EQ(told, 1);
  ASSERT_EQ(take(limited(10), 2), 1U);
  flow.return_all(1, 1);
  EXPECT_EQ(told, 2);
  ASSERT_EQ(take(limited(10), 1), 1U);
  flow.put_back(1, 1, Pace::fresh, false);
  EXPECT_EQ(told, 2) << "who could not use it would wake himself for ever";
}

TEST_F(FlowControlTest, NotifiesOtherEnginesOfFreeCapacity) {
  int told = 0;
  flow.on_capacity([&] { ++told; });
  BizType type = biz_type(1);
  type.pool = pool_of(2);
  ASSERT_EQ(take(type, 2), 2U);
  flow.return_all(1, 1);
  EXPECT_EQ(told, 0) << "no take() got too little";
  ASSERT_EQ(take(type, 2), 1U);
  flow.return_all(1, 1);
  EXPECT_EQ(told, 1);
  flow.return_all(1, 1);
  EXPECT_EQ(told, 1) << "the waiting engine is notified";
}

TEST_F(FlowControlTest, AnEngineThatFoundThePoolFullIsNotifiedOfAFreeSlot) {
  int told = 0;
  flow.on_capacity([&] { ++told; });
  BizType type = biz_type(1);
  type.pool = pool_of(2);
  EXPECT_TRUE(flow.has_free(*type.pool));
  ASSERT_EQ(take(type, 2), 2U);
  EXPECT_FALSE(flow.has_free(*type.pool)) << "another type, or another engine, waits";
  flow.return_all(1, 1);
  EXPECT_EQ(told, 1);
  EXPECT_TRUE(flow.has_free(*type.pool));
}

TEST_F(FlowControlTest, ATypeWhoseEndpointChangesTakesItsSlotsAlong) {
  BizType type = biz_type(1);
  const auto before = pool_of(4), after = pool_of(5);
  type.pool = before;
  ASSERT_EQ(take(type, 3), 3U);
  type.pool = after;
  EXPECT_EQ(take(type, 10), 2U) << "three of five run on";
  EXPECT_EQ(flow.in_pool(*before), 0U);
  flow.return_all(1, 5);
  EXPECT_EQ(flow.in_pool(*after), 0U);
}

TEST_F(FlowControlTest, AnEngineThatSharesAPoolRetriesWithinASecond) {
  BizType type = biz_type(1);
  type.pool = pool_of(2);
  flow.on_capacity([] {});
  EXPECT_EQ(flow.take(type, 3, Pace::fresh, now).again, MonoTime::max());
  flow.on_capacity([] {});
  const auto again = flow.take(type, 1, Pace::fresh, now).again;
  EXPECT_GT(again, now) << "or it would never rest";
  EXPECT_LE(again, now + 1s);
}

TEST_F(FlowControlTest, ARateAllowsABurstOfOneSecondThenItsRate) {
  const BizType type = paced(20);
  EXPECT_EQ(take(type, 100), 0U) << "nothing has come together yet";
  now += 10s;
  EXPECT_EQ(take(type, 100), 20U);
  std::size_t n = 0;
  for (int i = 0; i < 100; ++i) {
    now += 100ms;
    n += take(type, 100);
  }
  EXPECT_GE(n, 199U);
  EXPECT_LE(n, 200U);
}

TEST_F(FlowControlTest, ReturnsWhenTheRateAllowsTheNextStart) {
  const BizType type = paced(4);
  take(type, 1);
  now += 1s;
  ASSERT_EQ(take(type, 4), 4U);
  const auto taken = flow.take(type, 1, Pace::fresh, now);
  EXPECT_EQ(taken.n, 0U);
  EXPECT_GT(taken.again, now);
  EXPECT_LE(taken.again, now + 260ms);
  now = taken.again;
  EXPECT_EQ(take(type, 1), 1U);
}

TEST_F(FlowControlTest, UnstartedJobsCountForNoRate) {
  const BizType type = paced(1);
  take(type, 1);
  now += 1s;
  ASSERT_EQ(take(type, 1), 1U);
  flow.put_back(1, 1, Pace::fresh, false);
  EXPECT_EQ(take(type, 1), 1U);
  EXPECT_EQ(flow.used(1), 1U);
}

TEST_F(FlowControlTest, OnlyLateJobsGoAtTheCatchUpPace) {
  BizType type = biz_type(1);
  type.catch_up_rate_per_s = 3;
  EXPECT_EQ(take(type, 50), 50U);
  EXPECT_EQ(take(type, 50, Pace::catch_up), 0U);
  now += 1s;
  EXPECT_EQ(take(type, 50, Pace::catch_up), 3U);
  EXPECT_EQ(take(type, 50), 50U);
}

// Several nodes on one store ------------------------------------------------------------------------------------------

TEST_F(PermitsTest, OneNodeGetsAllAtOnceAndTwoShareThem) {
  node(1).next = node(1).renewer.step(now);
  while (node(1).next <= now) node(1).next = node(1).renewer.step(now);
  EXPECT_EQ(node(1).take(10), 6U);
  node(1).flow.return_all(1, 6);
  node(2);
  pass(2s);
  EXPECT_EQ(node(1).take(10), 3U);
  EXPECT_EQ(node(2).take(10), 3U);
}

TEST_F(PermitsTest, IdlePermitsMoveToTheNodeWithWork) {
  node(1), node(2);
  pass(2s);
  node(2).waiting = 100;
  pass(1500ms);
  EXPECT_EQ(node(2).take(10), 6U);
  EXPECT_EQ(node(1).take(10), 0U);
}

TEST_F(PermitsTest, ABusyNodeGivesUpItsSurplusAsItsJobsEnd) {
  node(1).waiting = 100;
  pass(1s);
  ASSERT_EQ(node(1).take(10), 6U);
  node(2).waiting = 100;
  pass(2s);
  EXPECT_EQ(node(2).take(10), 0U);
  const int woken = node(1).waker.n;
  node(1).flow.return_all(1, 2);
  EXPECT_GT(node(1).waker.n, woken);
  EXPECT_EQ(node(1).take(10), 0U);
  pass(1s);
  EXPECT_EQ(node(2).take(10), 2U);
}

TEST_F(PermitsTest, WithOnePermitAndTwoNodesBothGetTheirTurn) {
  type.max_running = 1;
  node(1).waiting = node(2).waiting = 100;
  std::map<NodeId, int> starts;
  for (int i = 0; i < 200; ++i) {
    for (const NodeId id : {1, 2}) {
      starts[id] += static_cast<int>(node(id).take(1));
      EXPECT_LE(running(), 1U);
    }
    pass(100ms);
    for (const NodeId id : {1, 2}) node(id).flow.return_all(1, node(id).used());
  }
  EXPECT_GT(starts[1], 40);
  EXPECT_GT(starts[2], 40);
}

TEST_F(PermitsTest, PermitsOfADeadNodeReturnWhenItsAttemptsHaveEnded) {
  type.ttr = 20s;
  node(1).waiting = node(2).waiting = 100;
  pass(2s);
  ASSERT_EQ(node(1).take(10), 3U);
  nodes.erase(1);
  for (int i = 0; i < 24; ++i) {
    pass(1s);
    EXPECT_LE(node(2).used() + node(2).take(10), 3U) << i << " s after the death";
  }
  pass(3s);
  EXPECT_EQ(node(2).used() + node(2).take(10), 6U) << "nothing leaks";
}

TEST_F(PermitsTest, ANodeWithoutALeaseStopsBeforeItsPermitsMove) {
  type.ttr = 1s;
  node(1).waiting = node(2).waiting = 100;
  pass(2s);
  node(1).is_cut_off = true;
  for (int i = 0; i < 100; ++i) {
    node(1).take(1), node(2).take(1);
    ASSERT_LE(running(), 6U);
    pass(100ms);
    node(1).flow.return_all(1, node(1).used());  // its jobs end within their lease
  }
  EXPECT_EQ(node(2).used(), 6U);
  EXPECT_FALSE(node(1).flow.is_counted(1, now)) << "so nothing is leased for longer there";
  EXPECT_TRUE(node(2).flow.is_counted(1, now));
  node(1).is_cut_off = false;
  pass(3s);
  node(1).take(10);
  EXPECT_EQ(running(), 6U) << "it takes nothing back that another uses";
}

TEST_F(PermitsTest, ARequestThatArrivesLateChangesNothing) {
  node(1).waiting = 100;
  node(1).is_late = true;
  node(1).next = node(1).renewer.step(now);  // asks for all while it holds nothing
  node(1).is_late = false;
  pass(2s);
  ASSERT_EQ(node(1).take(10), 6U);
  node(1).late();
  node(2).waiting = 100;
  pass(1s);
  EXPECT_EQ(node(2).take(10), 0U);
}

TEST_F(PermitsTest, LostRepliesLeakNoPermits) {
  node(1).waiting = 100;
  node(1).loses_answers = true;
  pass(2s);
  EXPECT_EQ(node(1).take(10), 0U);
  node(1).loses_answers = false;
  pass(1s);
  EXPECT_EQ(node(1).take(10), 6U);
}

TEST_F(PermitsTest, ALoweredLimitHoldsForAllThatStartAfterwards) {
  node(1).waiting = node(2).waiting = 100;
  pass(2s);
  node(1).take(10), node(2).take(10);
  ASSERT_EQ(running(), 6U);
  type.max_running = 2;
  for (auto& [id, each] : nodes) each->renewer.set_catalog(catalog());
  pass(2s);
  for (auto& [id, each] : nodes) EXPECT_EQ(each->take(10), 0U);
  for (int i = 0; i < 3; ++i)
    for (auto& [id, each] : nodes) each->flow.return_all(1, 1);
  pass(2s);
  for (auto& [id, each] : nodes) each->take(10);
  EXPECT_EQ(running(), 2U);
}

TEST_F(PermitsTest, ANodeThatDrainsLeavesItsPartToTheOthers) {
  node(1), node(2).waiting = 100;
  pass(2s);
  node(1).renewer.drain();
  pass(2s);
  EXPECT_EQ(node(1).take(10), 0U);
  EXPECT_EQ(node(2).take(10), 6U);
}

TEST_F(PermitsTest, TheNodesTogetherKeepARate) {
  type = paced(40);
  for (const NodeId id : {1, 2, 3}) node(id).waiting = 100;
  pass(3s);
  for (const NodeId id : {1, 2, 3}) node(id).take(1000);  // what had come together
  std::size_t n = 0;
  for (int i = 0; i < 100; ++i) {
    pass(100ms);
    for (const NodeId id : {1, 2, 3}) n += node(id).take(1000);
  }
  EXPECT_GE(n, 390U);
  EXPECT_LE(n, 403U);
}

TEST_F(PermitsTest, ALimitIsOfTheClusterAndConnectionsAreOfEachNode) {
  type.pool = pool_of(4);
  for (const NodeId id : {1, 2}) node(id).waiting = 100;
  pass(2s);
  for (const NodeId id : {1, 2}) EXPECT_EQ(node(id).take(10), 3U) << "half of six permits";
  for (const NodeId id : {1, 2}) node(id).flow.return_all(1, 3);
  type.max_running.reset();
  for (const NodeId id : {1, 2}) EXPECT_EQ(node(id).take(10), 4U) << "all four connections of the node";
}

TEST_F(PermitsTest, SendsNoRequestWhenNoTypeHasALimit) {
  type = biz_type(1);
  EXPECT_EQ(node(1).renewer.step(now), kWhenWoken);
}

}  // namespace
}  // namespace tocsin

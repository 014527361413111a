// PermitStore: the limits that the nodes share.
#include "support/contract/store_fixture.h"
#include "support/must.h"

namespace tocsin {
namespace {

using namespace std::chrono_literals;

// Two nodes' sessions, and a type with limits.
struct Permits {
  explicit Permits(StoreFixture& fixture) : db(fixture) {
    BizType type;
    type.name = "limited";
    type.handler_kind = "webhook";
    type.handler_json = R"({"kind":"webhook"})";
    type.max_running = 10;
    type.rate_per_s = 5;
    id = must(db.types().put(type)).type.type_id;
  }
  PermitReply::Item renew(NodeId node, int held, int wanted, Duration lease = 30s, Duration ttl = 5s) {
    return renew_as(++number, node, held, wanted, lease, ttl);
  }
  PermitReply::Item renew_as(std::int64_t n, NodeId node, int held, int wanted, Duration lease = 30s,
                             Duration ttl = 5s) {
    const PermitBeat beat{node, n, ttl, {{id, Limit::running, held, wanted, wanted, held, lease}}};
    PermitReply reply = must((node % 2 ? db.permits() : db.other_permits()).renew(beat));
    EXPECT_EQ(reply.items.size(), 1U);
    return reply.items.at(0);
  }
  int renewed(NodeId node, int held, int wanted) { return granted(renew(node, held, wanted), node); }
  static int granted(const PermitReply::Item& item, NodeId node) {
    for (const PermitShare& share : item.shares)
      if (share.node == node) return share.granted;
    return 0;
  }

  StoreFixture& db;
  TypeId id = 0;
  std::int64_t number = 0;
};

TEST_P(StoreContract, PermitsAreGrantedUpToTheLimitAndNoFurther) {
  Permits permits(*db);
  EXPECT_EQ(permits.renewed(1, 0, 7), 7);
  const auto item = permits.renew(2, 0, 7);
  EXPECT_EQ(item.total, 10);
  EXPECT_EQ(permits.granted(item, 2), 3);
  ASSERT_EQ(item.shares.size(), 2U);
  EXPECT_EQ(item.shares[0].node, 1);
  EXPECT_EQ(item.shares[0].need, 7);
  EXPECT_FALSE(item.shares[0].is_expired);
  EXPECT_EQ(permits.renewed(3, 0, 1), 0);
}

TEST_P(StoreContract, PermitsThatAreReturnedAreFreeForOthers) {
  Permits permits(*db);
  permits.renew(1, 0, 10);
  EXPECT_EQ(permits.renewed(1, 4, 4), 4);
  EXPECT_EQ(permits.renewed(2, 0, 10), 6);
  EXPECT_EQ(permits.renewed(1, 4, 10), 4) << "what is held stays, and nothing is free";
}

TEST_P(StoreContract, PermitsHeldAreCappedByWhatOthersWereGranted) {
  Permits permits(*db);
  permits.renew(1, 0, 4);
  EXPECT_EQ(permits.renewed(2, 9, 9), 6);
  EXPECT_EQ(permits.renewed(3, 5, 5), 0);
}

TEST_P(StoreContract, PermitsIgnoreAnOlderRequestThatArrivesLate) {
  Permits permits(*db);
  permits.renew_as(5, 1, 0, 3);
  permits.renew_as(7, 1, 3, 8);
  EXPECT_EQ(permits.granted(permits.renew_as(6, 1, 0, 0), 1), 8);
  EXPECT_EQ(permits.granted(permits.renew_as(7, 1, 0, 0), 1), 8) << "nor one that comes twice";
  EXPECT_EQ(permits.renewed(2, 0, 10), 2);
}

TEST_P(StoreContract, PermitsOfADeadNodeAreFreeWhenItsAttemptsHaveEnded) {
  Permits permits(*db);
  permits.renew(1, 0, 10, /*lease=*/40ms, /*ttl=*/40ms);
  let_pass(45ms);
  const auto expired = permits.renew(2, 0, 10, 40ms, 40ms);
  if (permits.granted(expired, 2) == 0) {  // slow machines look too late
    EXPECT_TRUE(expired.shares.at(0).is_expired);
  }
  let_pass(45ms);
  EXPECT_EQ(permits.renewed(2, 0, 10), 10);
}

TEST_P(StoreContract, PermitsWaitForTheLongestLeaseOfADeadNode) {
  Permits permits(*db);
  permits.renew(1, 0, 10, /*lease=*/1h, /*ttl=*/1ms);
  permits.renew(1, 10, 10, /*lease=*/1ms, /*ttl=*/1ms);
  let_pass(5ms);
  EXPECT_EQ(permits.renewed(2, 0, 10), 0);
}

TEST_P(StoreContract, PermitsALoweredLimitIsReachedAsTheyAreReturned) {
  Permits permits(*db);
  permits.renew(1, 0, 10);
  BizType type = must(db->types().list()).at(0);
  for (const BizType& each : must(db->types().list()))
    if (each.type_id == permits.id) type = each;
  type.max_running = 4;
  must(db->types().put(type));
  const auto item = permits.renew(1, 10, 10);
  EXPECT_EQ(item.total, 4);
  EXPECT_EQ(permits.granted(item, 1), 10) << "they are in use";
  EXPECT_EQ(permits.renewed(1, 3, 10), 4);
}

TEST_P(StoreContract, PermitsOfANodeThatLeavesAreAllReturned) {
  Permits permits(*db);
  permits.renew(1, 0, 10);
  must(db->permits().return_all(1));
  must(db->permits().return_all(1));
  EXPECT_EQ(permits.renewed(2, 0, 10), 10);
}

TEST_P(StoreContract, PermitsDivideEachRateSeparatelyInThousandths) {
  Permits permits(*db);
  const PermitBeat beat{1,
                        1,
                        5s,
                        {{permits.id, Limit::rate, 0, 2000, 1, 0, 0s},
                         {permits.id, Limit::catch_up, 0, 5, 1, 0, 0s},
                         {permits.id, Limit::running, 0, 1, 1, 0, 1s},
                         {999, Limit::running, 0, 1, 1, 0, 1s}}};
  const auto items = must(db->permits().renew(beat)).items;
  ASSERT_EQ(items.size(), 4U);
  EXPECT_EQ(items[0].total, kWholeRate);
  EXPECT_EQ(permits.granted(items[0], 1), kWholeRate);
  EXPECT_EQ(items[1].total, 0) << "the type has no such limit";
  EXPECT_EQ(permits.granted(items[1], 1), 0);
  EXPECT_EQ(permits.granted(items[2], 1), 1);
  EXPECT_EQ(items[3].total, 0) << "nor does a type that is not there";
}

TEST_P(StoreContract, PermitsOfADeadNodeGoToTheNodeThatTookItsLeases) {
  Permits permits(*db);
  permits.renew(1, 0, 4, /*lease=*/1h, /*ttl=*/1ms);
  permits.renew(3, 0, 3, /*lease=*/1h, /*ttl=*/1ms);
  permits.renew(2, 0, 2);
  permits.renew(4, 0, 1);
  let_pass(5ms);
  const auto take_over = [&](std::int64_t n) { return must(db->other_permits().take_over(2, n, permits.id, 5)); };
  const std::int64_t renewal = permits.number - 1;
  EXPECT_EQ(take_over(renewal - 1), 0) << "before it renewed";
  EXPECT_EQ(take_over(renewal), 5);
  EXPECT_EQ(permits.renewed(2, 7, 7), 7);
  EXPECT_EQ(take_over(renewal), 0) << "late: the node has renewed since";
  EXPECT_EQ(take_over(permits.number), 2) << "as many as there are";
  EXPECT_EQ(take_over(permits.number), 0) << "none of who is alive";
  const auto item = permits.renew(2, 9, 10);
  EXPECT_EQ(permits.granted(item, 2), 9);
  EXPECT_EQ(permits.granted(item, 4), 1);
  EXPECT_EQ(must(db->permits().take_over(5, permits.number, permits.id, 5)), 0) << "who has never renewed";
}

}  // namespace
}  // namespace tocsin

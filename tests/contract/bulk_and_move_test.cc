// Bulk operations and moves of shards exclude each other in the control database. On PostgreSQL alone: the stores in
// memory have no transactions that wait for each other.
#include <gtest/gtest.h>

#include <future>

#include "postgres/pg_bulk_store.h"
#include "postgres/pg_move_store.h"
#include "support/must.h"
#include "support/process.h"
#include "support/test_database.h"

namespace tocsin {
namespace {

using State = ShardMove::State;

class BulkAndMove : public testing::Test {
 protected:
  BulkAndMove() {
    database.place_all_shards_in(0);
    request.action = BulkAction::cancel;
    request.filter.biz_id = "a";
    request.filter_json = R"({"biz_id":"a"})";
  }
  ShardMove taken() { return must(moves.take(3, DatabaseId{1}, {})).value(); }
  std::optional<Bulk> start(const std::string& placement) {
    return must(bulks.start(request, 1, 1, std::chrono::seconds(15), placement));
  }

  TestDatabase database{8};
  Session session{SessionConfig{database.url(), "tocsin move of shard 3"}};
  PgMoveStore moves{session};
  PgBulkStore bulks{SessionConfig{database.url(), "tocsin bulk"}, 8};
  BulkRequest request;
};

TEST_F(BulkAndMove, NoShardIsFrozenWhileABulkRuns) {
  ShardMove move = taken();
  Bulk bulk = start(must(bulks.placement()).value()).value();
  const Status refused = moves.set_state(move, State::switching);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::conflict);
  EXPECT_NE(refused.error().message.find("bulk operation " + std::to_string(bulk.bulk_id)), std::string::npos)
      << refused.error().message;
  EXPECT_EQ(move.state, State::copying);
  bulk.state = BulkState::done;
  EXPECT_TRUE(must(bulks.finish(bulk, 1)));
  must(moves.set_state(move, State::switching));
}

TEST_F(BulkAndMove, NoBulkStartsWhileAShardMayBeFrozen) {
  ShardMove move = taken();
  const std::string before = must(bulks.placement()).value();
  must(moves.set_state(move, State::switching));
  EXPECT_FALSE(must(bulks.placement()));
  EXPECT_FALSE(start(before));
  must(moves.flip(move));
  EXPECT_FALSE(must(bulks.placement())) << "it is not open in the target yet";
  must(moves.set_writable(move));
  EXPECT_TRUE(start(must(bulks.placement()).value()));
}

TEST_F(BulkAndMove, NoBulkStartsWithACountFromBeforeAFreezeOrAMove) {
  ShardMove move = taken();
  const std::string counted_at = must(bulks.placement()).value();
  must(moves.set_state(move, State::switching));
  must(moves.set_state(move, State::copying));
  must(moves.set_writable(move));
  EXPECT_FALSE(start(counted_at)) << "the shard was frozen meanwhile";
  const std::string before_the_move = must(bulks.placement()).value();
  must(moves.set_state(move, State::switching));
  must(moves.flip(move));
  must(moves.set_writable(move));
  must(moves.end(move));
  EXPECT_FALSE(start(before_the_move)) << "the shard lives elsewhere";
  EXPECT_TRUE(start(must(bulks.placement()).value()));
}

TEST_F(BulkAndMove, OfBothAtOnceOneIsRefused) {
  ShardMove move = taken();
  pqxx::connection other(database.url());
  pqxx::work starting(other);
  starting.exec("SELECT FROM tocsin.shard_map FOR UPDATE");
  starting.exec(
      "INSERT INTO tocsin.bulk (action, filter, matched, node_id, lease_until) VALUES ('cancel', '{}', 1, 1, now())");
  auto switching = std::async(std::launch::async, [&] { return moves.set_state(move, State::switching); });
  EXPECT_TRUE(eventually([&] { return database.number("SELECT count(*) FROM pg_locks WHERE NOT granted") > 0; }));
  starting.commit();
  const Status refused = switching.get();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::conflict);
}

}  // namespace
}  // namespace tocsin

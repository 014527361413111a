#include "multidb/shard_mover.h"

#include <gtest/gtest.h>

#include <functional>
#include <stdexcept>
#include <utility>

#include "support/fake_moves.h"
#include "support/no_faults.h"

namespace tocsin {
namespace {

constexpr Shard kShard = 1;

// Does something once, right after a call to a database has changed it and before the command goes on.
class Once final : public NoFaults {
 public:
  Once(std::string verb, std::function<void()> action) : verb_(std::move(verb)), action_(std::move(action)) {}

  bool after(const FakeCall& call) override {
    if (call.verb == verb_)
      if (const auto now = std::exchange(action_, nullptr)) now();
    return true;
  }

 private:
  const std::string verb_;
  std::function<void()> action_;
};

struct Killed {};

// Three databases; the shard lives in the second one.
class ShardMoverTest : public ::testing::Test {
 protected:
  ShardMoverTest() {
    for (int i = 0; i < 3; ++i) {
      databases.emplace_back([this] { return WallTime() + clock.now().time_since_epoch(); }, 4);
      moves.emplace_back(databases.back(), moves);
    }
    moves[0].data().members.set_database_ids({0, 1, 2, 0});
    moves[0].nodes_behind = [](std::int64_t) { return std::vector<std::string>(); };
    for (Shard shard = 0; shard < 4; ++shard)
      moves[static_cast<std::size_t>(map().database_of(shard))].settle_in(shard);
  }
  ShardMap map() { return moves[0].data().members.map(); }
  ShardMover mover(FaultPoint& faults) {
    const auto open_session = [&](DatabaseId database_id, std::optional<Shard> shard) {
      return fake_move_end(moves[static_cast<std::size_t>(database_id)], shard, clock, faults);
    };
    return {{{0, "a", ""}, {1, "b", ""}, {2, "c", ""}}, open_session, clock, {}, [](const std::string&) {}};
  }
  Status move(DatabaseId target, FaultPoint& faults) { return mover(faults).move(kShard, target); }
  // A command that moves the shard ends right after this call to a database has changed it.
  void expect_killed_after(const std::string& verb) {
    Once kill(verb, [] { throw Killed(); });
    EXPECT_THROW(static_cast<void>(move(2, kill)), Killed) << verb;
  }
  void create(const std::string& name) {
    NewJob job;
    job.type_id = 1;
    job.when.in = std::chrono::hours(9);
    for (int i = 0; job.biz_id.empty() || shard_of(job.biz_id, 4) != kShard; ++i) job.biz_id = name + std::to_string(i);
    ASSERT_TRUE(databases[1].create({job}, CreateMode::all_or_nothing, WallTime() + clock.now().time_since_epoch()));
  }
  void replicate() { clock.sleep(std::chrono::seconds(1)); }
  void expect_at_rest_in(DatabaseId database_id) {
    EXPECT_EQ(map().database_of(kShard), database_id);
    for (std::size_t i = 0; i < moves.size(); ++i) {
      EXPECT_EQ(moves[i].leftovers(), "") << i;
      EXPECT_EQ(moves[i].lives_here(kShard), static_cast<DatabaseId>(i) == database_id) << i;
    }
  }

  // Replication goes on while the mover waits.
  struct Clock final : PacingClock {
    explicit Clock(FakeMoveDatabases& all) : moves(all) {}
    MonoTime now() const override { return time; }
    void sleep(Duration length) override {
      time += length;
      if (time > MonoTime(std::chrono::hours(9))) throw std::runtime_error("the command waits for ever");
      for (FakeMoves& each : moves)
        while (each.replicate(kShard)) {
        }
    }
    FakeMoveDatabases& moves;
    MonoTime time{std::chrono::hours(1)};
  };
  std::deque<FakeDatabase> databases;
  FakeMoveDatabases moves;
  Clock clock{moves};
  NoFaults steady;
};

TEST_F(ShardMoverTest, MovesAShard) {
  EXPECT_TRUE(move(2, steady));
  expect_at_rest_in(2);
}

// The databases forget a move that has ended. A command that was stopped since it became the driver must not be taken
// for the driver of a new one: it would open the shard in its source again.
TEST_F(ShardMoverTest, ACommandThatWasStoppedDuringTheWholeMoveChangesNothing) {
  Once stall("move_take", [&] { EXPECT_TRUE(move(2, steady)); });
  EXPECT_TRUE(move(2, stall)) << "the shard is where it should be";
  expect_at_rest_in(2);
}

TEST_F(ShardMoverTest, ACommandThatWasStoppedDuringTwoMovesChangesNothing) {
  Once stall("move_take", [&] {
    EXPECT_TRUE(move(2, steady));
    EXPECT_TRUE(move(1, steady));
  });
  EXPECT_TRUE(move(2, stall)) << "it begins anew";
  expect_at_rest_in(2);
}

// Its records hold counts that must be taken once.
TEST_F(ShardMoverTest, ACommandThatIsReplacedLeavesTheRecordsOfTheMove) {
  Once stall("move_take", [&] {
    for (const std::size_t i : {1U, 2U})
      ASSERT_TRUE(moves[i].note({kShard, 1, 2, 1, ShardMove::State::copying, false, false}));
    ASSERT_TRUE(moves[0].take(kShard, DatabaseId{2}, {}, WallTime() + clock.now().time_since_epoch()));
  });
  EXPECT_FALSE(move(2, stall)) << "another command drives it";
  EXPECT_TRUE(moves[1].noted(kShard));
  EXPECT_TRUE(moves[2].noted(kShard));
  EXPECT_TRUE(move(2, steady));
  expect_at_rest_in(2);
}

// A new slot does not have what was committed before it.
TEST_F(ShardMoverTest, ASlotThatTheSourceHasLostBeginsTheCopyAnew) {
  create("before");
  expect_killed_after("subscribe");
  replicate();
  ASSERT_TRUE(moves[2].is_copied(kShard));
  moves[1].lose_slot(kShard);
  create("meanwhile");
  EXPECT_TRUE(move(2, steady));
  expect_at_rest_in(2);
  EXPECT_EQ(moves[2].rows(), 2);
}

TEST_F(ShardMoverTest, ASlotThatIsLostWhileTablesAreCopiedBeginsTheCopyAnew) {
  create("before");
  Once failover("subscribe", [&] { moves[1].lose_slot(kShard); });
  EXPECT_TRUE(move(2, failover));
  expect_at_rest_in(2);
  EXPECT_EQ(moves[2].rows(), 1);
}

// The shard is writable while it is copied again.
TEST_F(ShardMoverTest, ASlotThatIsLostDuringTheFreezeEndsTheFreeze) {
  create("before");
  Once failover("freeze_shard", [&] { moves[1].lose_slot(kShard); });
  const auto began = clock.now();
  EXPECT_TRUE(move(2, failover));
  expect_at_rest_in(2);
  EXPECT_EQ(moves[2].rows(), 1);
  EXPECT_LT(clock.now() - began, std::chrono::seconds(10));
}

// Rows without a subscription would be taken for jobs of the shard when it lives there.
TEST_F(ShardMoverTest, ACopyWhoseEndWasCutShortBeginsAnew) {
  for (const char* verb : {"stop_workers", "drop_slots", "forget_shard", "unsubscribe", "unpublish"}) {
    create(verb);
    const auto jobs = moves[1].rows();
    expect_killed_after("subscribe");
    replicate();
    moves[1].lose_slot(kShard);
    expect_killed_after(verb);
    EXPECT_TRUE(move(2, steady)) << verb;
    expect_at_rest_in(2);
    EXPECT_EQ(moves[2].rows(), jobs) << verb;
    EXPECT_TRUE(move(1, steady)) << verb;
  }
}

TEST_F(ShardMoverTest, ARollBackThatWasCutShortLeavesNoRowsWithoutASubscription) {
  for (const char* verb : {"stop_workers", "drop_slots", "forget_shard", "unsubscribe", "unpublish"}) {
    create(verb);
    expect_killed_after("subscribe");
    replicate();
    Once kill(verb, [] { throw Killed(); });
    EXPECT_THROW(static_cast<void>(mover(kill).abort(kShard)), Killed) << verb;
    if (moves[2].subscription(kShard) == ShardCopy::Subscription::none) {
      EXPECT_EQ(moves[2].rows(), 0) << verb;
    }
    EXPECT_TRUE(mover(steady).abort(kShard)) << verb;
    expect_at_rest_in(1);
    EXPECT_EQ(moves[2].rows(), 0) << verb;
  }
}

TEST_F(ShardMoverTest, ARecordThatAKilledCommandLeftDelaysNoLaterMove) {
  ASSERT_TRUE(move(2, steady));
  ASSERT_TRUE(move(0, steady));
  for (const std::size_t i : {1U, 2U})
    ASSERT_TRUE(moves[i].note({kShard, 1, 2, 5, ShardMove::State::copying, false, false}));
  EXPECT_TRUE(move(1, steady));
  expect_at_rest_in(1);
}

}  // namespace
}  // namespace tocsin

// Heartbeat and shard owner of several nodes on one database in memory, stepped by hand.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "cluster/heartbeat.h"
#include "cluster/shard_owner.h"
#include "support/no_faults.h"

namespace tocsin {
namespace {

using namespace std::chrono_literals;

class HandClock final : public Clock {
 public:
  MonoTime time{1h};
  MonoTime now() const override { return time; }
};

class Quiet final : public EventSink {
 public:
  void count(Counter, std::int64_t) override {}
  void started(TypeId, Duration) override {}
  void failed(std::string_view, const Error&) override { ++failures; }
  int failures = 0;
};

// Fails every call while it is down.
class Switch final : public NoFaults {
 public:
  bool is_down = false;
  bool fails_once = false;  // then it is up again
  Effect before(const FakeCall&) override {
    const Effect effect = is_down ? Effect::unavailable : Effect::happens;
    if (std::exchange(fails_once, false)) is_down = false;
    return effect;
  }
};

constexpr int kShards = 60;

struct TestNode final : Waker {
  TestNode(NodeId id, FakeDatabase& database, HandClock& clock)
      : config{id, "node", "1", kShards},
        store(database, &clock, &line),
        heartbeat(config, store, view, events,
                  {[this](MonoTime now) { return scanned(now); }, [this](MonoTime until) { lease_valid_until = until; },
                   [this] { return owner.applied(); }, [this](bool is_sole) { is_sole_member = is_sole; }}),
        owner(config, store, view, events,
              {[this](const std::vector<Shard>& shards, const ShardMap& map) {
                 owned = shards, database_ids = map.database_ids;
               },
               [this] { heartbeat.note_applied(); }, [this] { heartbeat.request(); }}) {
    heartbeat.set_wakers(this, this);
  }
  void wake() override { is_woken = true; }
  // Once a second each database that it reaches.
  std::vector<ScannedDatabase> scanned(MonoTime now) {
    std::vector<ScannedDatabase> all;
    for (auto& [database_id, at] : scanned_at) {
      if (!unreached.contains(database_id) && (!at || now - *at >= 1s)) at = now;
      all.push_back({database_id, at ? std::optional(now - *at) : std::nullopt});
    }
    return all;
  }
  void step(MonoTime now) {
    do {
      is_woken = false;
      heartbeat.step(now);
      if (!is_owner_stalled) owner.step(now);
    } while (is_woken);
  }

  ClusterConfig config;
  Switch line;
  FakeMemberStore store;
  LatestView view{nullptr};
  Quiet events;
  Heartbeat heartbeat;
  ShardOwner owner;
  bool is_woken = false, is_sole_member = false, is_owner_stalled = false;
  std::vector<Shard> owned;
  std::vector<DatabaseId> database_ids;
  MonoTime lease_valid_until{};
  std::map<DatabaseId, std::optional<MonoTime>> scanned_at;  // empty: it tells nothing
  std::set<DatabaseId> unreached;
};

class Cluster : public testing::Test {
 protected:
  TestNode& add(NodeId id) { return *nodes.emplace(id, std::make_unique<TestNode>(id, database, clock)).first->second; }
  TestNode& node(NodeId id) { return *nodes.at(id); }
  // Every node does what it has to do, every tenth of a second.
  void pass(Duration time) {
    for (const MonoTime end = clock.time + time; clock.time < end;) {
      clock.time += 100ms;
      wall += 100ms;
      step();
    }
  }
  void step() {
    for (auto& [id, each] : nodes)
      if (!frozen.contains(id)) each->step(clock.time);
  }
  // As a kill does: nothing more is heard of it, and its session ends.
  void kill(NodeId id) {
    nodes.erase(id);
    database.members.end_session(id);
  }
  std::map<NodeId, int> loads() const {
    std::map<NodeId, int> loads;
    for (const NodeId owner : database.members.map().owners) ++loads[owner];
    return loads;
  }

  HandClock clock;
  WallTime wall{std::chrono::sys_days(std::chrono::year(2026) / 3 / 1)};
  FakeDatabase database{[this] { return wall; }, kShards};
  std::map<NodeId, std::unique_ptr<TestNode>> nodes;
  std::set<NodeId> frozen;
};

using Loads = std::map<NodeId, int>;

TEST_F(Cluster, TheFirstNodeOwnsEverythingAtOnce) {
  add(1).step(clock.time);
  EXPECT_EQ(node(1).owned.size(), 60U);
}

TEST_F(Cluster, ASoleMemberSendsHalfTheHeartbeats) {
  const auto beats_in_ten_seconds = [&] {
    int beats = 0;
    for (int i = 0; i < 100; ++i) {
      const MonoTime before = node(1).lease_valid_until;
      pass(100ms);
      beats += node(1).lease_valid_until != before;
    }
    return beats;
  };
  add(1).step(clock.time);
  EXPECT_EQ(beats_in_ten_seconds(), 5);
  EXPECT_TRUE(node(1).is_sole_member);
  EXPECT_GT(node(1).lease_valid_until, clock.time);
  std::vector<DatabaseId> database_ids(kShards, 0);
  database_ids[7] = 3;
  database.members.set_database_ids(database_ids);
  pass(3s);
  EXPECT_EQ(beats_in_ten_seconds(), 10) << "it also tells which databases it reaches";
  database.members.set_database_ids(std::vector<DatabaseId>(kShards, 0));
  pass(3s);
  EXPECT_EQ(beats_in_ten_seconds(), 5);
  add(2);
  pass(8s);
  EXPECT_EQ(loads(), (Loads{{1, 30}, {2, 30}}));
  EXPECT_EQ(beats_in_ten_seconds(), 10);
  EXPECT_FALSE(node(1).is_sole_member);
  kill(2);
  pass(3s);
  EXPECT_EQ(beats_in_ten_seconds(), 5) << "the row of the dead one is still there";
}

TEST_F(Cluster, NewcomersGetTheirShareOnceTheyHaveStayed) {
  add(1), add(2), add(3);
  step();
  EXPECT_EQ(loads(), (Loads{{1, 60}})) << "newcomers take nothing from others";
  pass(8s);
  EXPECT_EQ(loads(), (Loads{{1, 20}, {2, 20}, {3, 20}}));
  for (const auto& [id, each] : nodes) EXPECT_EQ(each->owned.size(), 20U);
  EXPECT_LE(database.members.map().version, 3) << "one change per newcomer, not one per node that notices";
}

TEST_F(Cluster, ANodeThatComesAndGoesWithinATimeoutMovesNoShards) {
  add(1);
  pass(10s);
  const auto version = database.members.map().version;
  for (NodeId id = 2; id < 6; ++id) {
    add(id);
    pass(4s);
    kill(id);
    pass(1s);
  }
  EXPECT_EQ(database.members.map().version, version);
}

TEST_F(Cluster, AMissedHeartbeatMovesNoShards) {
  add(1), add(2);
  pass(10s);
  const auto version = database.members.map().version;
  node(2).line.is_down = true;
  pass(2300ms);
  node(2).line.is_down = false;
  pass(10s);
  EXPECT_EQ(database.members.map().version, version);
}

// Whenever it happens between two heartbeats: it reconnects before another node acts on the lost session.
TEST_F(Cluster, ALostSessionMovesNoShards) {
  add(1), add(2), add(3);
  pass(10s);
  const auto version = database.members.map().version;
  for (int i = 0; i < 30; ++i) {
    pass(1300ms);
    node(2).line.is_down = node(2).line.fails_once = true;
    database.members.end_session(2);
  }
  pass(3s);
  EXPECT_EQ(database.members.map().version, version);
  EXPECT_GT(node(2).events.failures, 20);
}

TEST_F(Cluster, AShortOutageThatEndsEverySessionReassignsNothing) {
  add(1), add(2), add(3);
  pass(10s);
  const auto version = database.members.map().version;
  for (const Duration outage : {300ms, 700ms, 1200ms, 1600ms, 2400ms}) {
    for (auto& [id, each] : nodes) each->line.is_down = true, database.members.end_session(id);
    pass(outage);
    node(1).line.is_down = false;
    pass(900ms);  // the others are slow to come back
    for (auto& [id, each] : nodes) each->line.is_down = false;
    pass(8s);
    EXPECT_EQ(database.members.map().version, version) << outage.count();
  }
}

TEST_F(Cluster, AKilledNodeIsReplacedBeforeTheTimeoutAndAFrozenOneAtIt) {
  add(1), add(2), add(3);
  pass(10s);
  kill(3);
  pass(1700ms);
  EXPECT_EQ(loads(), (Loads{{1, 30}, {2, 30}})) << "its session ended";
  pass(2s);
  frozen = {2};
  pass(2700ms);
  EXPECT_EQ(loads(), (Loads{{1, 30}, {2, 30}})) << "silent, but connected";
  pass(1500ms);
  EXPECT_EQ(loads(), (Loads{{1, 60}}));
  EXPECT_LE(node(2).lease_valid_until, clock.time) << "it has stopped by itself";
}

// Between the answer and the change of its shards it would release jobs with their old times behind the floors of
// others.
TEST_F(Cluster, ALeaseIsExtendedWhenTheShardsOfTheMapAreApplied) {
  add(1), add(2);
  pass(10s);
  node(1).is_owner_stalled = true;
  pass(10s);
  EXPECT_GT(node(1).lease_valid_until, clock.time) << "the map is the same";
  add(3);
  pass(10s);
  ASSERT_EQ(loads(), (Loads{{1, 20}, {2, 20}, {3, 20}}));
  EXPECT_EQ(node(1).owned.size(), 30U);
  EXPECT_LE(node(1).lease_valid_until, clock.time);
  node(1).is_owner_stalled = false;
  step();
  EXPECT_EQ(node(1).owned.size(), 20U);
  EXPECT_GT(node(1).lease_valid_until, clock.time) << "before its next heartbeat";
  node(1).is_owner_stalled = true;
  kill(2), kill(3);
  pass(10s);
  ASSERT_EQ(loads(), (Loads{{1, 20}, {2, 20}, {3, 20}})) << "its owner proposes nothing";
  add(4);
  pass(20s);
  ASSERT_EQ(loads(), (Loads{{1, 30}, {4, 30}}));
  ASSERT_EQ(node(1).owned.size(), 20U);
  EXPECT_GT(node(1).lease_valid_until, clock.time) << "all shards that it works with are its own";
}

TEST_F(Cluster, ANodeThatReturnsAfterItsTimeoutIsANewcomer) {
  add(1), add(2);
  pass(10s);
  frozen = {2};
  pass(7s);
  frozen = {};
  pass(4s);
  EXPECT_EQ(loads(), (Loads{{1, 60}}));
  pass(3s);
  EXPECT_EQ(loads(), (Loads{{1, 30}, {2, 30}}));
}

TEST_F(Cluster, ADrainingNodeIsReplacedAtOnce) {
  add(1), add(2), add(3);
  pass(10s);
  database.members.on_notify = [this] {
    for (auto& [id, each] : nodes) each->heartbeat.request();
  };
  node(3).heartbeat.drain();
  step();
  step();
  EXPECT_EQ(loads(), (Loads{{1, 30}, {2, 30}}));
  EXPECT_EQ(node(1).owned.size() + node(2).owned.size(), 60U);
  EXPECT_TRUE(node(3).owned.empty());
}

// It may have been dead for an hour: a newcomer knows only what the rows say.
TEST_F(Cluster, ANodeThatNeverSentAHeartbeatGetsNoShards) {
  add(1), add(2);
  pass(10s);
  node(1).heartbeat.drain();
  node(1).heartbeat.step(clock.time);
  frozen = {1};
  kill(2);
  add(3).step(clock.time);
  EXPECT_EQ(loads(), (Loads{{2, 30}, {3, 30}}));
}

TEST_F(Cluster, AnOutageOfTheDatabaseReassignsNothingHoweverLong) {
  add(1), add(2), add(3);
  pass(10s);
  const auto version = database.members.map().version;
  for (auto& [id, each] : nodes) each->line.is_down = true, database.members.end_session(id);
  pass(60s);
  for (const auto& [id, each] : nodes) {
    EXPECT_LE(each->lease_valid_until, clock.time) << "no node scans meanwhile";
    EXPECT_EQ(each->owned.size(), 20U) << "but every node keeps them";
  }
  node(2).line.is_down = false;
  pass(2s);
  node(1).line.is_down = node(3).line.is_down = false;
  add(4);
  pass(4s);
  EXPECT_EQ(database.members.map().version, version);
}

TEST_F(Cluster, AStandbyThatTookOverMayHaveAnotherMapUnderTheSameNumber) {
  add(1), add(2);
  pass(10s);
  const auto standby = database.snapshot();
  add(3);
  pass(8s);
  const auto lost = database.members.map().version;
  frozen.insert(1);
  kill(3);
  database.restore(standby);
  pass(6s);
  ASSERT_EQ(database.members.map().version, lost);
  ASSERT_EQ(loads(), (Loads{{2, 60}}));
  frozen.clear();
  pass(200ms);
  EXPECT_TRUE(node(1).owned.empty()) << "it believes in the map that is lost";
}

TEST_F(Cluster, AStepOfTheDatabasesClockReassignsNothing) {
  add(1), add(2), add(3);
  pass(10s);
  const auto version = database.members.map().version;
  for (const Duration step : {Duration(1h), Duration(-2h), Duration(6s), Duration(-6s)}) {
    wall += step;
    pass(8s);
  }
  EXPECT_EQ(database.members.map().version, version);
  wall -= 1h;
  kill(3);
  pass(4s);
  EXPECT_EQ(loads(), (Loads{{1, 30}, {2, 30}})) << "and a dead node is still noticed";
}

TEST_F(Cluster, AStaleMemberRowGetsNoShards) {
  add(1), add(2), add(3);
  pass(10s);
  kill(1), kill(2);
  nodes.erase(3);
  database.members.leave(3);
  add(4);
  step();
  EXPECT_EQ(loads(), (Loads{{1, 20}, {2, 20}, {4, 20}}));
  pass(2700ms);
  EXPECT_EQ(loads(), (Loads{{4, 60}}));
}

TEST_F(Cluster, AMovedShardStaysMovedInEveryNewShardMap) {
  add(1), add(2);
  pass(10s);
  std::vector<DatabaseId> database_ids(kShards, 0);
  database_ids[7] = 3;
  database.members.set_database_ids(database_ids);
  pass(2s);
  for (const auto& [id, each] : nodes) EXPECT_EQ(each->database_ids, database_ids);
  kill(2);
  pass(4s);
  EXPECT_EQ(loads(), (Loads{{1, 60}}));
  EXPECT_EQ(node(1).database_ids, database_ids);
}

// Home, and a database that has half of the shards.
class TwoDatabases : public Cluster {
 protected:
  void SetUp() override {
    std::vector<DatabaseId> database_ids(kShards, 0);
    std::fill(database_ids.begin() + kShards / 2, database_ids.end(), DatabaseId{1});
    database.members.set_database_ids(database_ids);
    for (NodeId id = 1; id <= 3; ++id) scanning(add(id));
    pass(12s);
    ASSERT_EQ(loads(), (Loads{{1, 20}, {2, 20}, {3, 20}}));
  }
  static void scanning(TestNode& node) { node.scanned_at = {{0, {}}, {1, {}}}; }
  int at_the_second(NodeId id) const {
    const auto& owners = database.members.map().owners;
    return static_cast<int>(std::count(owners.begin() + kShards / 2, owners.end(), id));
  }
  std::int64_t version() const { return database.members.map().version; }
};

TEST_F(TwoDatabases, ANodeThatAloneCannotReachOneLosesItsShardsThere) {
  ASSERT_GT(at_the_second(3), 0);
  node(3).unreached = {1};
  pass(8s);
  EXPECT_EQ(at_the_second(3), 0);
  EXPECT_EQ(at_the_second(1) + at_the_second(2), kShards / 2);
  EXPECT_GE(loads()[3], 19) << "it has others instead";
  const auto moved = version();
  node(3).unreached = {};
  pass(60s);
  EXPECT_EQ(loads(), (Loads{{1, 20}, {2, 20}, {3, 20}}));
  EXPECT_LE(version(), moved + 1) << "what it lost is not given back for its own sake";
}

TEST_F(TwoDatabases, AFlappingConnectionMovesNoShardsBack) {
  node(3).unreached = {1};
  pass(8s);
  kill(2), nodes.erase(2);
  pass(8s);
  ASSERT_EQ(at_the_second(1), kShards / 2);
  const auto moved = version();
  for (int i = 0; i < 10; ++i) {
    node(3).unreached = {};
    pass(7s);
    EXPECT_EQ(at_the_second(3), 0);
    node(3).unreached = {1};
    pass(8s);
  }
  EXPECT_EQ(version(), moved);
}

TEST_F(TwoDatabases, ADatabaseThatNoNodeReachesMovesNothing) {
  const auto before = version();
  for (const Duration outage : {2s, 4s, 5s, 6s, 30s}) {
    for (auto& [id, each] : nodes) {
      pass(300ms);
      each->unreached = {1};
    }
    pass(outage);
    for (auto& [id, each] : nodes) {
      each->unreached = {};
      pass(700ms);
    }
    pass(20s);
    EXPECT_EQ(version(), before) << outage.count();
  }
}

TEST_F(TwoDatabases, ANodeWithoutReportedScansKeepsItsShards) {
  node(1).scanned_at.clear();  // as an older version does
  pass(20s);
  EXPECT_EQ(loads(), (Loads{{1, 20}, {2, 20}, {3, 20}}));
  const auto before = version();
  TestNode& fresh = add(4);
  scanning(fresh);
  fresh.unreached = {1};
  pass(3s);
  EXPECT_EQ(version(), before);
  fresh.unreached = {};
  pass(15s);
  EXPECT_EQ(loads(), (Loads{{1, 15}, {2, 15}, {3, 15}, {4, 15}}));
}

TEST_F(TwoDatabases, ANodeNotConfiguredForOneGetsNoShardsThere) {
  add(4).scanned_at = {{0, {}}};
  pass(30s);
  EXPECT_EQ(at_the_second(4), 0);
  EXPECT_GE(loads()[4], 14) << "others instead, one by one: no chain of exchanges is looked for";
}

TEST_F(Cluster, ARestartUnderAnyNameTakesOwnerlessShards) {
  add(1);
  pass(10s);
  nodes.erase(1);
  database.members.leave(1);
  add(2).step(clock.time);
  EXPECT_EQ(node(2).owned.size(), 60U) << "at once after an orderly end";
  kill(2);
  add(3);
  pass(2700ms);
  EXPECT_EQ(node(3).owned.size(), 60U);
}

}  // namespace
}  // namespace tocsin

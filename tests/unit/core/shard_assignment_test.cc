#include "core/shard_assignment.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "base/random.h"

namespace tocsin {
namespace {

using Owners = std::vector<NodeId>;

std::vector<Peer> sharing(const std::vector<NodeId>& ids) {
  std::vector<Peer> peers;
  for (const NodeId id : ids) peers.push_back({id, Standing::shares, {}});
  return peers;
}

std::vector<NodeId> ids_up_to(int n) {
  std::vector<NodeId> ids(static_cast<std::size_t>(n));
  std::iota(ids.begin(), ids.end(), NodeId{1});
  return ids;
}

std::map<NodeId, int> loads(const Owners& owners) {
  std::map<NodeId, int> loads;
  for (const NodeId owner : owners) ++loads[owner];
  return loads;
}

int moved(const Owners& before, const Owners& after) {
  int n = 0;
  for (std::size_t i = 0; i < before.size(); ++i) n += before[i] != after[i];
  return n;
}

void expect_balanced(const Owners& owners, const std::vector<NodeId>& ids) {
  const auto load = loads(owners);
  int least = static_cast<int>(owners.size()), most = 0, total = 0;
  for (const NodeId id : ids) {
    const auto it = load.find(id);
    const int n = it == load.end() ? 0 : it->second;
    least = std::min(least, n), most = std::max(most, n), total += n;
  }
  EXPECT_EQ(total, static_cast<int>(owners.size())) << "a shard belongs to a stranger";
  EXPECT_LE(most - least, 1);
}

// What no assignment that is balanced to within one can avoid: every shard of a node that is gone, and what a node has
// above its part. As many nodes as the division leaves over may have one more; best those that have it already.
int least_movement(const Owners& before, const std::vector<NodeId>& ids) {
  const auto load = loads(before);
  const int part = static_cast<int>(before.size() / ids.size());
  int larger_parts = static_cast<int>(before.size() % ids.size());
  int kept = 0;
  for (const NodeId id : ids) {
    const auto it = load.find(id);
    const int n = it == load.end() ? 0 : it->second;
    const bool is_larger = n > part && larger_parts > 0;
    if (is_larger) --larger_parts;
    kept += std::min(n, part + is_larger);
  }
  return static_cast<int>(before.size()) - kept;
}

Owners change(const Owners& before, const std::vector<NodeId>& ids) {
  const Owners after = assign_shards(before, sharing(ids));
  expect_balanced(after, ids);
  EXPECT_EQ(moved(before, after), least_movement(before, ids));
  EXPECT_EQ(assign_shards(after, sharing(ids)), after) << "what is balanced stays";
  return after;
}

TEST(ShardAssignment, IsBalancedAndMovesNoMoreThanItMustForOneToAHundredNodes) {
  for (const int shards : {1, 2, 3, 7, 64, 100, 1000, 1024}) {
    for (int n = 1; n <= 100; ++n) {
      SCOPED_TRACE(std::to_string(shards) + " shards, " + std::to_string(n) + " nodes");
      const auto nodes = ids_up_to(n);
      const Owners settled = change(Owners(static_cast<std::size_t>(shards)), nodes);
      const Owners grown = change(settled, ids_up_to(n + 1));
      EXPECT_EQ(moved(settled, grown), shards / (n + 1)) << "a newcomer takes its part and nothing else moves";
      if (n > 1) {
        const std::vector<NodeId> rest(nodes.begin() + 1, nodes.end());
        EXPECT_EQ(moved(settled, change(settled, rest)), loads(settled)[1]) << "only what the leaver had moves";
      }
    }
  }
}

TEST(ShardAssignment, StaysBalancedAndMinimalThroughAnySequenceOfChanges) {
  Random random(7);
  for (int round = 0; round < 60; ++round) {
    Owners owners(1 + random.below(1024));
    std::vector<NodeId> ids{1};
    NodeId last = 1;
    for (int step = 0; step < 40; ++step) {
      const auto joins = random.below(4), leaves = random.below(4);
      for (std::uint64_t i = 0; i < joins && ids.size() < 100; ++i) ids.push_back(++last);
      for (std::uint64_t i = 0; i < leaves && ids.size() > 1; ++i)
        ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(random.below(ids.size())));
      owners = change(owners, ids);
      ASSERT_FALSE(HasFailure()) << "round " << round << ", step " << step;
    }
  }
}

TEST(ShardAssignment, DoesNotDependOnTheOrderOfThePeers) {
  Random random(11);
  for (int round = 0; round < 200; ++round) {
    Owners owners(1 + random.below(200));
    for (NodeId& owner : owners) owner = static_cast<NodeId>(random.below(12));
    std::vector<Peer> peers;
    for (NodeId id = 1; id <= 9; ++id)
      if (random.below(4) > 0) peers.push_back({id, static_cast<Standing>(random.below(3)), {}});
    const Owners expected = assign_shards(owners, peers);
    for (int i = 0; i < 5; ++i) {
      for (std::size_t k = peers.size(); k > 1; --k) std::swap(peers[k - 1], peers[random.below(k)]);
      ASSERT_EQ(assign_shards(owners, peers), expected);
    }
  }
}

TEST(ShardAssignment, ANodeThatKnowsFewerSharingPeersHasNothingToCorrect) {
  Random random(13);
  for (int round = 0; round < 200; ++round) {
    const auto ids = ids_up_to(2 + static_cast<int>(random.below(20)));
    const Owners owners = assign_shards(Owners(1 + random.below(300)), sharing(ids));
    std::vector<Peer> peers = sharing(ids);
    for (Peer& peer : peers) peer.standing = static_cast<Standing>(random.below(3));
    EXPECT_EQ(assign_shards(owners, peers), owners);
  }
}

TEST(ShardAssignment, ANewcomerTakesOnlyWhatNoMemberScans) {
  const Owners before{1, 1, 1, 1, 2, 2, 2, 2};
  EXPECT_EQ(assign_shards(before, {{1}, {2}, {3, Standing::newcomer, {}}}), before);
  const Owners after = assign_shards(before, {{1}, {3, Standing::newcomer, {}}});
  EXPECT_EQ(loads(after)[3], 4);
  EXPECT_EQ(moved(before, after), 4);
}

TEST(ShardAssignment, ABrieflySilentMemberKeepsItsShardsAndGetsNone) {
  const Owners before{1, 1, 2, 2, 3, 3};
  const Owners after = assign_shards(before, {{1}, {2, Standing::keeps, {}}});
  EXPECT_EQ(after, (Owners{1, 1, 2, 2, 1, 1}));
}

TEST(ShardAssignment, WithoutAReceiverNothingMoves) {
  const Owners before{1, 2, 1, 0};
  EXPECT_EQ(assign_shards(before, {}), before);
  EXPECT_EQ(assign_shards(before, {{2, Standing::keeps, {}}}), before);
}

// ---- databases that not every node reaches

const Peer* peer_of(const std::vector<Peer>& peers, NodeId id) {
  const auto found = std::ranges::find(peers, id, &Peer::id);
  return found == peers.end() ? nullptr : &*found;
}

bool may_get(const Peer& peer, DatabaseId database_id) {
  return peer.standing != Standing::keeps && !peer.troubles.contains(database_id);
}

bool reaches(const Peer& peer, DatabaseId database_id) {
  const auto trouble = peer.troubles.find(database_id);
  return trouble == peer.troubles.end() || trouble->second != Reach::out_of_reach;
}

struct Scene {
  Owners owners;
  std::vector<DatabaseId> database_ids;
  std::vector<Peer> peers;

  bool is_anybodys(DatabaseId database_id) const {
    return std::ranges::any_of(peers, [&](const Peer& peer) { return may_get(peer, database_id); });
  }
};

Scene any_scene(Random& random) {
  Scene scene;
  const auto nodes = 1 + random.below(12), databases = 1 + random.below(5);
  scene.owners.resize(1 + random.below(200));
  for (NodeId& owner : scene.owners) owner = static_cast<NodeId>(random.below(nodes + 2));
  for (std::size_t i = 0; i < scene.owners.size(); ++i)
    scene.database_ids.push_back(static_cast<DatabaseId>(random.below(databases)));
  for (NodeId id = 1; id <= static_cast<NodeId>(nodes); ++id) {
    Peer peer{id, static_cast<Standing>(random.below(3)), {}};
    for (DatabaseId database_id = 1; database_id < static_cast<DatabaseId>(databases); ++database_id)
      if (random.below(3) == 0) peer.troubles[database_id] = static_cast<Reach>(random.below(2));
    if (random.below(5) > 0) scene.peers.push_back(peer);
  }
  return scene;
}

TEST(ShardAssignment, ANodeThatDoesNotReachADatabaseLosesItsShardsThereAlone) {
  Random random(17);
  for (int round = 0; round < 2000; ++round) {
    const Scene scene = any_scene(random);
    const Owners after = assign_shards(scene.owners, scene.peers, scene.database_ids);
    for (std::size_t i = 0; i < after.size(); ++i) {
      const DatabaseId database_id = scene.database_ids[i];
      const Peer* const owner = peer_of(scene.peers, after[i]);
      const Peer* const before = peer_of(scene.peers, scene.owners[i]);
      if (scene.is_anybodys(database_id)) {
        ASSERT_TRUE(owner && reaches(*owner, database_id)) << "shard " << i << " is out of reach of " << after[i];
        ASSERT_TRUE(after[i] == scene.owners[i] || may_get(*owner, database_id));
      } else if (before) {
        ASSERT_EQ(after[i], scene.owners[i]) << "no peer reaches it: it stays";
      }
    }
  }
}

TEST(ShardAssignment, IsBalancedAsFarAsReachAllowsAndStaysSo) {
  Random random(19);
  for (int round = 0; round < 500; ++round) {
    Scene scene = any_scene(random);
    const Owners after = assign_shards(scene.owners, scene.peers, scene.database_ids);
    ASSERT_EQ(assign_shards(after, scene.peers, scene.database_ids), after);
    const auto load = loads(after);
    const auto n = [&](NodeId id) { return load.contains(id) ? load.at(id) : 0; };
    for (std::size_t i = 0; i < after.size(); ++i) {
      const Peer* const owner = peer_of(scene.peers, after[i]);
      if (!owner || owner->standing != Standing::shares) continue;
      for (const Peer& other : scene.peers) {
        if (other.standing != Standing::shares || !may_get(other, scene.database_ids[i])) continue;
        ASSERT_LE(n(owner->id) - n(other.id), 1) << owner->id << " has more than " << other.id;
      }
    }
    // A node that has watched for a shorter time has nothing to correct either.
    for (Peer& peer : scene.peers)
      for (const DatabaseId database_id : scene.database_ids)
        if (database_id != 0 && random.below(3) == 0) peer.troubles.try_emplace(database_id, Reach::unsteady);
    ASSERT_EQ(assign_shards(after, scene.peers, scene.database_ids), after);
  }
}

TEST(ShardAssignment, ADatabaseThatNoMemberReachesMovesNothing) {
  const std::vector<DatabaseId> database_ids{0, 0, 1, 1, 1, 1};
  const Owners before{1, 2, 1, 1, 2, 2};
  const std::map<DatabaseId, Reach> lost{{1, Reach::out_of_reach}}, unsteady{{1, Reach::unsteady}};
  using enum Standing;
  EXPECT_EQ(assign_shards(before, {{1, shares, lost}, {2, shares, lost}}, database_ids), before);
  EXPECT_EQ(assign_shards(before, {{1, shares, lost}, {2, shares, unsteady}}, database_ids), before);
  EXPECT_EQ(assign_shards(before, {{1, shares, lost}, {2, shares, {}}}, database_ids), (Owners{1, 1, 2, 2, 2, 2}));
}

}  // namespace
}  // namespace tocsin

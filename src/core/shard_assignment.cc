#include "core/shard_assignment.h"

#include <algorithm>
#include <map>

namespace tocsin {
namespace {

// A peer and what it has; the order of shards decides which one moves.
struct Holding {
  NodeId id = 0;
  Standing standing = Standing::shares;
  std::vector<std::size_t> shards;
};

bool has_fewer(const Holding* a, const Holding* b) { return a->shards.size() < b->shards.size(); }

}  // namespace

std::vector<NodeId> assign_shards(std::vector<NodeId> owners, const std::vector<Peer>& peers) {
  std::map<NodeId, Holding> holdings;  // by id: equals are told apart by it
  for (const Peer& peer : peers) holdings[peer.id] = {peer.id, peer.standing, {}};
  std::vector<Holding*> gaining, sharing;
  for (auto& [id, holding] : holdings) {
    if (holding.standing != Standing::keeps) gaining.push_back(&holding);
    if (holding.standing == Standing::shares) sharing.push_back(&holding);
  }
  if (gaining.empty()) return owners;

  std::vector<std::size_t> orphans;
  for (std::size_t shard = 0; shard < owners.size(); ++shard) {
    const auto holder = holdings.find(owners[shard]);
    (holder == holdings.end() ? orphans : holder->second.shards).push_back(shard);
  }
  const auto give = [&](std::size_t shard, Holding& to) {
    owners[shard] = to.id;
    to.shards.push_back(shard);
  };
  for (const std::size_t shard : orphans) give(shard, **std::ranges::min_element(gaining, has_fewer));

  while (sharing.size() > 1) {
    const auto [least, most] = std::ranges::minmax_element(sharing, has_fewer);
    if ((*most)->shards.size() - (*least)->shards.size() <= 1) break;
    const std::size_t shard = (*most)->shards.back();
    (*most)->shards.pop_back();
    give(shard, **least);
  }
  return owners;
}

}  // namespace tocsin

// Which node scans which shard, after the cluster has changed: moves as few shards as balance allows.
//
//   1. What belonged to nobody, or to a node that is not among `peers`, goes one by one to the peer that has the
//   fewest.
//   2. Peers that share are then balanced to within one: while one has two more than another, one shard moves.
// Both are the least that has to move. The same input gives the same output, whatever the order of `peers`; and who has
// been balanced among all is balanced among some, so nodes that know fewer peers as sharing have nothing to correct.
#pragma once

#include <vector>

#include "tocsin/member_store.h"

namespace tocsin {

enum class Standing {
  keeps,     // silent for a moment: keeps what it has and gets nothing
  newcomer,  // gets what nobody scans, and takes nothing from others yet
  shares,
};

struct Peer {
  NodeId id = 0;
  Standing standing = Standing::shares;
};

// `owners` by shard, 0 for nobody; the new owners in the same order. Without a peer that may get any, the shards stay
// where they are.
std::vector<NodeId> assign_shards(std::vector<NodeId> owners, const std::vector<Peer>& peers);

}  // namespace tocsin

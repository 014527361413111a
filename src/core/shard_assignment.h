// assign_shards(): computes which node scans which shard, after the members or the databases that they reach have
// changed. Every node computes it from its own view. Its shard owner (cluster/shard_owner.h) proposes the result as the
// next shard map. A pure function. Thread: any.
//
//   1. Orphans are given, one by one, to the peer that has the fewest shards. A shard is an orphan if it has no owner,
//      if its owner is not among `peers`, or if its owner is out of reach of its database while another peer may get
//      it.
//   2. Peers with Standing::shares are then balanced. One shard moves from a peer to another that may get it, while the
//      first has at least two shards more. If every peer reaches every database, their counts then differ by at most
//      one. Otherwise they may differ by more, because exchanges by way of a third peer are not searched.
// Both steps move as few shards as possible. The result does not depend on the order of `peers`. Of balanced peers
// every part is balanced, too: so a node that sees fewer sharing peers than another node does moves nothing in step 2.
#pragma once

#include <map>
#include <vector>

#include "ports/member_store.h"

namespace tocsin {

// What a peer may gain and lose. By the member's heartbeats, as cluster/shard_owner.cc decides.
enum class Standing {
  keeps,     // is silent for a moment, or was not heard yet: keeps its shards and gets none
  newcomer,  // has been heard for less than a time-out: gets orphans (step 1), and is not balanced
  shares,    // takes part in both steps
};

// Why a peer gets no shards of a database.
enum class Reach {
  out_of_reach,  // has not scanned it for ClusterConfig::out_of_reach(): loses its shards there to others
  unsteady,      // scans it not now, or not for long enough yet: keeps its shards there and gets none
};

// A live node that does not drain; nodes that are dead or drain are left out, and lose their shards.
struct Peer {
  NodeId id = 0;
  Standing standing = Standing::shares;
  std::map<DatabaseId, Reach> troubles = {};  // databases that it does not reach steadily
};

// `owners`: the owner of each shard, 0: none. `database_ids`: the database of each shard; a missing entry is the
// control database. Returns the new owners, in the same order.
//
// If no peer that gets shards reaches a database steadily, shards of that database stay with owners among `peers`. The
// other shards of that database go to a peer that is not out of reach of it, or, without such a peer, to any that gets
// shards. If no peer gets shards (there is none, or all have Standing::keeps), every shard stays.
std::vector<NodeId> assign_shards(std::vector<NodeId> owners, const std::vector<Peer>& peers,
                                  const std::vector<DatabaseId>& database_ids = {});

}  // namespace tocsin

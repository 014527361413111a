// assign_shards(): computes which node scans which shard after the members or the databases that they reach have
// changed. Every node computes it from its own view and proposes the result as the next shard map
// (cluster/shard_owner.h). A pure function.
//
//   1. Shards without an owner that can scan them go one by one to the peer that has the fewest: shards without an
//      owner, of a node that is not among `peers`, or of a peer out of reach of their database while another may get
//      them.
//   2. Peers with Standing::shares are then balanced: while one has two more, or more, than another that may get one of
//      its shards, one shard moves. If every peer reaches every database, their counts then differ by at most one.
//      Otherwise they may differ by more, because exchanges by way of a third peer are not searched.
// Both steps move as few shards as possible. The result does not depend on the order of `peers`. If all peers that
// share are balanced, so is any part of them: a node for which fewer of them share changes nothing.
#pragma once

#include <map>
#include <vector>

#include "ports/member_store.h"

namespace tocsin {

enum class Standing {
  keeps,     // is silent for a moment, or was not heard yet: keeps its shards and gets none
  newcomer,  // heard for less than a time-out: takes part in step 1 only
  shares,    // takes part in both steps
};

// Why a peer gets no shards of a database.
enum class Reach {
  out_of_reach,  // has not scanned it for ClusterConfig::out_of_reach(): loses its shards there to others
  unsteady,      // does not scan it now, or not for long enough yet: keeps its shards there and gets none
};

// A live node that does not drain; nodes that are dead or drain are left out, and lose their shards.
struct Peer {
  NodeId id = 0;
  Standing standing = Standing::shares;
  std::map<DatabaseId, Reach> troubles = {};  // databases that it does not reach steadily
};

// `owners` by shard (0: none), and `database_ids` by shard (missing: the control database). Returns the new owners in
// the same order. If no peer that gets shards reaches a database steadily, its shards stay with owners among `peers`;
// its other shards go to a peer that is not out of reach of it, or else to any that gets shards. If no peer gets shards
// (there is none, or all have Standing::keeps), all stay.
std::vector<NodeId> assign_shards(std::vector<NodeId> owners, const std::vector<Peer>& peers,
                                  const std::vector<DatabaseId>& database_ids = {});

}  // namespace tocsin

// assign_shards(): which node scans which shard, after the cluster has changed. It moves as few shards as balance
// allows.
//
//   1. These shards go one by one to the peer that has the fewest: shards without an owner, of a node that is not among
//      `peers`, or of one that does not reach the shard's database while another does.
//   2. Sharing peers are then balanced: while one has two more than another that may get one of its shards, one shard
//      moves. If every peer reaches every database, counts differ by at most one; chains of exchanges are not searched.
// Both steps move as few shards as possible. The result does not depend on the order of `peers`. A set of peers that is
// balanced stays balanced when a part of it is considered, so a node that knows fewer sharing peers changes nothing.
#pragma once

#include <map>
#include <vector>

#include "ports/member_store.h"

namespace tocsin {

enum class Standing {
  keeps,     // was silent for a moment, or was not heard yet: keeps its shards and gets none
  newcomer,  // gets shards without an owner, and none from others yet
  shares,    // gets shards without an owner, and its part of the others'
};

// How a peer reaches a database.
enum class Reach {
  out_of_reach,  // has not scanned it for a time-out (ClusterConfig): loses its shards there to others
  unsteady,      // does not scan it now, or not for long enough yet: keeps its shards there and gets none
};

// A live node that does not drain.
struct Peer {
  NodeId id = 0;
  Standing standing = Standing::shares;
  std::map<DatabaseId, Reach> troubles = {};  // of the databases that it does not reach steadily
};

// `owners` by shard (0: none) and the databases the shards live in. Returns the new owners in the same order. Shards of
// a database that no peer reaches steadily stay with their owners, and those of dead nodes go to any live peer. Without
// a peer that may get shards, all stay.
std::vector<NodeId> assign_shards(std::vector<NodeId> owners, const std::vector<Peer>& peers,
                                  const std::vector<DatabaseId>& database_ids = {});

}  // namespace tocsin

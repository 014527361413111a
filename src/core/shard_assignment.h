// Which node scans which shard, after the cluster has changed: moves as few shards as balance allows.
//
//   1. What belonged to nobody, to a node that is not among `peers`, or to one that does not reach the shard's database
//   while another does, goes one by one to the peer that has the fewest.
//   2. Peers that share are then balanced: while one has two more than another that may have one of its shards, one
//   moves. Where everybody reaches everything, that is to within one; no chain of exchanges is looked for.
// Both are the least that has to move. The same input gives the same output, whatever the order of `peers`; and who has
// been balanced among all is balanced among some, so nodes that know fewer peers as sharing, or as reaching a database,
// have nothing to correct.
#pragma once

#include <map>
#include <vector>

#include "tocsin/member_store.h"

namespace tocsin {

enum class Standing {
  keeps,     // silent for a moment: keeps what it has and gets nothing
  newcomer,  // gets what nobody scans, and takes nothing from others yet
  shares,
};

// How a peer reaches a database.
enum class Reach {
  out_of_reach,  // not lately: what it has there is for others
  unsteady,      // not for long enough: it keeps what it has there and gets nothing
};

struct Peer {
  NodeId id = 0;
  Standing standing = Standing::shares;
  std::map<Place, Reach> troubles = {};  // of the databases that it does not reach steadily
};

// `owners` by shard, 0 for nobody, and the databases they live in; the new owners in the same order. A database that
// nobody reaches steadily is nobody's trouble: its shards stay where they are, and those of the dead go to whoever is
// there. Without a peer that may get any, all stay.
std::vector<NodeId> assign_shards(std::vector<NodeId> owners, const std::vector<Peer>& peers,
                                  const std::vector<Place>& places = {});

}  // namespace tocsin

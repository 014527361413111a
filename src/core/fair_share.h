// fair_share(): how many permits of a limit (running jobs, or a rate) a node should hold. The permit renewer of every
// node computes the shares from the same inputs and takes its own, so no node has to hand them out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tocsin {

// The share of node `self` (an index of `needs`) of `total` permits; the shares of all nodes sum up to `total`.
// `needs`: by node, how many permits it can use now. Small needs are met first: no node gets more than it needs while
// another lacks some. Permits that no node needs are spread evenly, so that the next job finds a permit on whichever
// node it becomes due.
//
// Permits that cannot be divided evenly go to some nodes, one each. `turn` decides to which: a number that all nodes
// compute alike, and that grows by one every two seconds of the database's clock. So if there are fewer permits than
// nodes, each node gets one in turn.
//
// REQUIRES: self < needs.size(); needs and total are not negative. Thread: any.
int fair_share(int total, std::span<const int> needs, std::size_t self, std::uint64_t turn);

}  // namespace tocsin

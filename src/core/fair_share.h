// fair_share(): divides the permits of a limit between the nodes. Every node computes the same shares from the same
// rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tocsin {

// The share of node `self` (an index of `needs`) of `total` permits. No node gets more than it needs while another
// lacks some. Small needs are met first. Permits that no node needs are spread evenly, so that the next job finds one
// on any node. The rest of a division goes to the nodes in turn, by `turn`: with fewer permits than nodes, each node
// has its time. REQUIRES: self < needs.size(); needs and total are not negative.
int fair_share(int total, std::span<const int> needs, std::size_t self, std::uint64_t turn);

}  // namespace tocsin

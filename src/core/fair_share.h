// How many permits each of several nodes should have.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tocsin {

// The fair share of node `self` of `total` permits. Nobody gets more than it needs while another lacks some, the small
// needs are met first, and what nobody needs is spread evenly, so that the next job finds a permit wherever it turns
// up. What cannot be divided goes to the nodes in turn, by `turn`: with fewer permits than nodes each has its time.
// REQUIRES: self < needs.size(); needs and total are not negative.
int fair_share(int total, std::span<const int> needs, std::size_t self, std::uint64_t turn);

}  // namespace tocsin

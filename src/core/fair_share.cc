#include "core/fair_share.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace tocsin {
namespace {

// Distributes `left` permits over the nodes `open` (indices), to each at most what it lacks. Returns the remainder.
int deal(int left, std::span<const int> needs, std::vector<int>& shares, std::vector<std::size_t> open,
         std::uint64_t turn) {
  while (left > 0) {
    std::erase_if(open, [&](std::size_t i) { return shares[i] >= needs[i]; });
    if (open.empty()) break;
    const auto n = static_cast<int>(open.size());
    if (left < n) {
      std::rotate(open.begin(), open.begin() + static_cast<std::ptrdiff_t>(turn % open.size()), open.end());
      for (int i = 0; i < left; ++i) ++shares[open[static_cast<std::size_t>(i)]];
      return 0;
    }
    const int each = left / n;
    for (const std::size_t i : open) {
      const int part = std::min(each, needs[i] - shares[i]);
      shares[i] += part;
      left -= part;
    }
  }
  return left;
}

}  // namespace

int fair_share(int total, std::span<const int> needs, std::size_t self, std::uint64_t turn) {
  std::vector<int> shares(needs.size(), 0);
  std::vector<std::size_t> all(needs.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  const int left = deal(total, needs, shares, all, turn);
  if (left > 0) {
    const auto n = static_cast<int>(needs.size());
    for (int& share : shares) share += left / n;
    for (int i = 0; i < left % n; ++i) ++shares[(static_cast<std::size_t>(i) + turn) % needs.size()];
  }
  return shares[self];
}

}  // namespace tocsin

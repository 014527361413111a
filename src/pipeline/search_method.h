// SearchMethod: how the scan searches for lanes (the jobs of one type in one shard) that have rows due soon: by a walk,
// which looks up the first row of one lane after the other, or by reading the index of due rows through.
//
// A walk costs a probe for each lane that has rows, whatever their number; to read the index costs by its size. A probe
// takes 3.6 us, a page of 8 KiB 6.7 us (64,000 lanes with a row each: 232 ms by a walk, 2.6 ms by reading). So the
// index is read where it has no more than 4 KiB per lane, some 30 rows. The last walk counted the lanes with rows. That
// count is lowered a little with every search, so a new walk corrects it in time; until then a search by reading costs
// no more than the walk did. The first search is a walk.
//
// Thread: owner only (the scanner's).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace tocsin {

class SearchMethod {
 public:
  // For LaneSearch::most_bytes, in bytes: an index up to this size is read through. `shards`: all of the database,
  // which share it.
  std::int64_t most_bytes(std::size_t shards) const {
    return static_cast<std::int64_t>(lanes_per_shard_ * static_cast<double>(shards) * kBytesPerLane);
  }
  // A search of `shards` shards was answered. `walked`: the lanes with rows, if it was a walk (ScanReply::walked).
  void note(std::optional<std::size_t> walked, std::size_t shards) {
    if (shards == 0) return;
    if (walked)
      lanes_per_shard_ = static_cast<double>(*walked) / static_cast<double>(shards);
    else
      lanes_per_shard_ *= kTrustLeft;
  }

 private:
  static constexpr double kBytesPerLane = 4096;
  static constexpr double kTrustLeft = 1 - 1.0 / 512;  // half is left after 355 searches: six minutes at one a second
  double lanes_per_shard_ = 0;
};

}  // namespace tocsin

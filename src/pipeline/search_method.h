// SearchMethod: how the scan searches for lanes (a lane: the jobs of one type in one shard) that have rows due soon.
// There are two methods: a walk, which looks up the first row of one lane after the other, or reading the whole index
// of due rows. Owned by the Scanner.
//
// A walk costs one probe (3.6 us) for each lane that has rows, however many rows. Reading costs 6.7 us per index page
// of 8 KiB. For 64,000 lanes with a row each a walk took 232 ms, and reading 2.6 ms. So the index is read if it has at
// most 4 KiB (some 30 rows) per lane.
//
// The number of lanes with rows is known from the last walk. This count is lowered a little with every search, so that
// a new walk corrects it in time. Until then a search by reading costs no more than the last walk did. The first search
// is a walk.
//
// Thread: owner only (the scanner's).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace tocsin {

class SearchMethod {
 public:
  // The value for LaneSearch::most_bytes: an index of at most this many bytes is read, a larger one is walked.
  // `shards`: number of all shards of the database, which share the index.
  std::int64_t most_bytes(std::size_t shards) const {
    return static_cast<std::int64_t>(lanes_per_shard_ * static_cast<double>(shards) * kBytesPerLane);
  }
  // A search of `shards` shards was answered. `walked` (ScanReply::walked): the number of lanes with rows that a walk
  // met; nullopt: the index was read.
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

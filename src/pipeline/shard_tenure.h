// ShardTenure: how long this node has owned each of its shards. The scanner asks it before it moves the floor of a
// lane.
//
// The previous owner of a shard may still write: a claim that it releases may make a row due at an old time, until its
// membership lease ends and its last statement has been answered. While that may happen, the shard is unsettled and the
// floors of its lanes stay at the beginning of time, so that the next sweep finds such a row.
//
// Thread: owner only (the scanner's). Reads no clock.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <vector>

#include "tocsin/clock.h"
#include "tocsin/shard.h"

namespace tocsin {

class ShardTenure {
 public:
  // `handover`: how long the previous owner of a shard may write; 0: not at all.
  explicit ShardTenure(Duration handover) : handover_(handover) {}

  // Call before each scan with the shards that the node owns, in order.
  void note(std::shared_ptr<const std::vector<Shard>> owned, MonoTime now) {
    now_ = now;
    if (owned == owned_) return;
    owned_ = std::move(owned);
    std::erase_if(since_, [this](const auto& entry) { return !std::ranges::binary_search(*owned_, entry.first); });
    for (const Shard shard : *owned_) since_.try_emplace(shard, now);
  }
  // The shard was gained since the last note(), perhaps after a loss that no note() saw.
  void begin_anew(Shard shard, MonoTime now) { since_[shard] = now; }
  // A shard that the node does not own is settled: of it only lanes of pull types are read, and their releases are due
  // at the time of the release.
  bool is_settled(Shard shard) const {
    const auto since = since_.find(shard);
    return since == since_.end() || now_ - since->second >= handover_;
  }

 private:
  const Duration handover_;
  std::shared_ptr<const std::vector<Shard>> owned_;
  std::map<Shard, MonoTime> since_;  // the shards of owned_
  MonoTime now_{};
};

}  // namespace tocsin

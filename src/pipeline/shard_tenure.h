// ShardTenure: how long this node has owned each of its shards. The Scanner owns it, and asks it before it moves the
// floor of a lane (a lane: the jobs of one type in one shard; the floor: no row due before it can be committed any
// more).
//
// The previous owner of a shard may still write until its membership lease ends and its last statement is answered. If
// it releases a claim meanwhile, a row may become due at an old time. So during this time the shard is unsettled: the
// floors of its lanes stay at the beginning of time, and the next sweep (a scan from the floor) finds such a row.
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
  // `handover`: how long the previous owner of a shard may still write (EngineConfig::handover_time); 0: not at all.
  explicit ShardTenure(Duration handover) : handover_(handover) {}

  // Call before each scan, with the shards that the node owns, ascending.
  void note(std::shared_ptr<const std::vector<Shard>> owned, MonoTime now) {
    now_ = now;
    if (owned == owned_) return;
    owned_ = std::move(owned);
    std::erase_if(since_, [this](const auto& entry) { return !std::ranges::binary_search(*owned_, entry.first); });
    for (const Shard shard : *owned_) since_.try_emplace(shard, now);
  }
  // The shard was gained since the last note(), perhaps after a loss that no note() saw.
  void begin_anew(Shard shard, MonoTime now) { since_[shard] = now; }
  // Whether the previous owner has stopped writing there. Also true of a shard that this node does not own: only lanes
  // of pull types are read in such a shard, and a row of these that is released is due at the time of the release.
  bool has_handover_ended(Shard shard) const {
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

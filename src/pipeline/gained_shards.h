// GainedShards: the shards that this node has gained since the scanner asked last. Two lists of shards do not tell that
// a shard was lost and gained again in between, and another node may have written to it meanwhile. Thread: any.
#pragma once

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "tocsin/shard.h"

namespace tocsin {

class GainedShards {
 public:
  // The node owns `after` now instead of `before`; both in order.
  void note(const std::vector<Shard>& before, const std::vector<Shard>& after) {
    MutexLock lock(mutex_);
    std::ranges::set_difference(after, before, std::inserter(shards_, shards_.end()));
  }
  std::set<Shard> take() {
    MutexLock lock(mutex_);
    return std::exchange(shards_, {});
  }

 private:
  Mutex mutex_;
  std::set<Shard> shards_ TOCSIN_GUARDED_BY(mutex_);
};

}  // namespace tocsin

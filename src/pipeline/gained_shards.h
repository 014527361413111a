// GainedShards: the shards (slices of all jobs) that this node has gained since the scanner last asked. The scanner
// must read a gained shard from the beginning. Comparing two lists of shards would miss a shard that was lost and
// gained again in between, although another node may have written to it meanwhile. Owned by EngineShared;
// Engine::set_shards() writes it. Thread: any.
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
  // The node owns the shards `after` now, and owned `before` until now; both ascending.
  void note(const std::vector<Shard>& before, const std::vector<Shard>& after) {
    MutexLock lock(mutex_);
    std::ranges::set_difference(after, before, std::inserter(shards_, shards_.end()));
  }
  // Returns the shards gained since the last call.
  std::set<Shard> take() {
    MutexLock lock(mutex_);
    return std::exchange(shards_, {});
  }

 private:
  Mutex mutex_;
  std::set<Shard> shards_ TOCSIN_GUARDED_BY(mutex_);
};

}  // namespace tocsin

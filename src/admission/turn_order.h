// TurnOrder: which type is served next. Types take turns in the order of their ids, beginning after the one served
// last. JobAdmission has one for each load class (light, hot, backlog) and form of a claim (fire, lease, claim).
//
// Guarantee: of n types that have work, each is served within n servings.
// Thread: any, under the lock of the DueQueue (JobAdmission holds it).
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

#include "tocsin/job.h"

namespace tocsin {

class TurnOrder {
 public:
  // The index of the type whose turn it is. REQUIRES: `types` ascending, not empty.
  std::size_t first(std::span<const TypeId> types) const {
    const auto next = std::ranges::upper_bound(types, last_);
    return next == types.end() ? 0 : static_cast<std::size_t>(next - types.begin());
  }
  void served(TypeId type) { last_ = type; }

 private:
  TypeId last_ = 0;
};

}  // namespace tocsin

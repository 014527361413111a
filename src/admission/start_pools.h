// StartPools: counts how many slots of each start pool the types hold on this node. A start pool bounds how many
// attempts run at once, by the connections to an endpoint or the threads of a worker pool; a slot counts one attempt.
// Owned by FlowControl.
//
// Rules:
//  - A slot is given only within the capacity of the pool. More slots are held only after the capacity has fallen, or
//    after a type has changed to this pool with the slots that it held.
//  - A type is given its equal part of the free slots, at least one, among the types that wait for the pool. So types
//    that share an endpoint converge to equal parts within the duration of an attempt, and a type that waits alone gets
//    all.
// Thread: any, under FlowControl's lock.
#pragma once

#include <cstddef>
#include <memory>
#include <unordered_map>

#include "ports/biz_type.h"

namespace tocsin {

class StartPools {
 public:
  // Takes up to `want` slots of the type's pool; returns how many. `waiting`: the number of types that wait for slots
  // of the pool, this one included. A type without a pool gets all that it wants.
  std::size_t take(const BizType& type, std::size_t want, std::size_t waiting);
  // Returns slots that were not used. This call and release() ignore slots beyond those that the type holds: an attempt
  // that began before the type had a pool holds none.
  void put_back(TypeId type, std::size_t n);
  // Returns slots of attempts that ended. True: a type of any engine got fewer slots of this pool than it wanted, and
  // no release() has reported that yet; the caller notifies the claimers.
  bool release(TypeId type, std::size_t n);

  std::size_t used(const StartPool& pool) const;
  // Whether the pool has a free slot. If not, the next release() of one returns true.
  bool has_free(const StartPool& pool);

 private:
  struct Use {
    std::size_t slots = 0;
    bool is_awaited = false;  // the next release() returns true
  };
  struct Holder {
    std::shared_ptr<const StartPool> pool;
    std::size_t slots = 0;
  };

  Use* return_slots(TypeId type, std::size_t n);

  std::unordered_map<const StartPool*, Use> pools_;
  std::unordered_map<TypeId, Holder> holders_;
};

}  // namespace tocsin

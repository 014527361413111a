// StartPools: how many slots of each start pool (connections to an endpoint, threads of a pool) this node's types hold.
// Part of FlowControl. A slot counts one attempt.
//
// Rules: no slot is given beyond the capacity of the pool; more are held only after the capacity has fallen, or after a
// type has changed to this pool with the slots it held. Of the free slots a type is given its equal part, at least one,
// among the types that wait for that pool. So types that share an endpoint converge to equal parts within the duration
// of an attempt, and a type that waits alone gets all.
// Thread: under FlowControl's lock.
#pragma once

#include <cstddef>
#include <memory>
#include <unordered_map>

#include "ports/biz_type.h"

namespace tocsin {

class StartPools {
 public:
  // Takes up to `want` slots of the type's pool. `waiting`: types that wait for slots of it, this one included. A type
  // without a pool gets all it wants.
  std::size_t take(const BizType& type, std::size_t want, std::size_t waiting);
  // Returns slots that were not used, without a report as release() gives. Both ignore slots beyond those that the type
  // holds: it may have got its pool while attempts ran.
  void put_back(TypeId type, std::size_t n);
  // Returns slots. True: since the last such report a type, of any engine, got fewer slots of this pool than it wanted.
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

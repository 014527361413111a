// StartPools: how many slots of each start pool (connections to an endpoint, threads of a pool) this node's types hold.
//
// Rules: a pool never holds more attempts than its capacity. Of the free slots a type is given its equal part among the
// types that wait for that pool, so types that share an endpoint converge to equal parts within one answer time, and a
// type that waits alone gets all.
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
  // Returns slots that were not used; does not report whether types wait for them.
  void put_back(TypeId type, std::size_t n);
  // Returns slots. True: a type, here or on another engine, was given fewer slots of this pool than it wanted.
  bool release(TypeId type, std::size_t n);

  std::size_t used(const StartPool& pool) const;
  // Whether the pool has a free slot. If not, the next release() of one returns true.
  bool has_free(const StartPool& pool);

 private:
  struct Use {
    std::size_t slots = 0;
    bool is_awaited = false;
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

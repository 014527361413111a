#include "admission/start_pools.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"

namespace tocsin {

std::size_t StartPools::take(const BizType& type, std::size_t want, std::size_t waiting) {
  Holder& holder = holders_[type.type_id];
  if (holder.pool != type.pool) {  // its settings have changed: running attempts count in the new pool
    const std::size_t slots = holder.slots;
    const Use* before = return_slots(type.type_id, slots);
    if (before && before->slots == 0) pools_.erase(holder.pool.get());
    holder = {type.pool, type.pool ? slots : 0};
    if (type.pool) pools_[type.pool.get()].slots += slots;
  }
  if (!type.pool) return want;
  Use& use = pools_[type.pool.get()];
  const std::size_t capacity = type.pool->capacity();
  const std::size_t free = capacity - std::min(capacity, use.slots);
  const std::size_t part = std::max<std::size_t>(1, free / std::max<std::size_t>(1, waiting));
  const std::size_t n = std::min({want, free, part});
  use.slots += n;
  use.is_awaited = use.is_awaited || n < want;
  holder.slots += n;
  return n;
}

StartPools::Use* StartPools::return_slots(TypeId type, std::size_t n) {
  const auto found = holders_.find(type);
  if (found == holders_.end() || !found->second.pool) return nullptr;
  Holder& holder = found->second;
  n = std::min(n, holder.slots);  // attempts that began before the type had a pool hold no slot
  Use& use = pools_[holder.pool.get()];
  TOCSIN_ASSERT(use.slots >= n);
  holder.slots -= n;
  use.slots -= n;
  return &use;
}

void StartPools::put_back(TypeId type, std::size_t n) { return_slots(type, n); }

bool StartPools::release(TypeId type, std::size_t n) {
  Use* const use = return_slots(type, n);
  return use && std::exchange(use->is_awaited, false);
}

std::size_t StartPools::used(const StartPool& pool) const {
  const auto found = pools_.find(&pool);
  return found == pools_.end() ? 0 : found->second.slots;
}

bool StartPools::has_free(const StartPool& pool) {
  const std::size_t taken = used(pool);
  if (pool.capacity() > taken) return true;
  if (taken > 0) pools_[&pool].is_awaited = true;
  return false;
}

}  // namespace tocsin

#include "admission/concurrency_limiter.h"

#include <algorithm>

#include "base/assert.h"

namespace tocsin {

std::size_t ConcurrencyLimiter::acquire(TypeId type, std::size_t want) {
  MutexLock lock(mutex_);
  std::size_t& used = used_by_type_[type];
  const std::size_t free = total_ - used_;
  want = std::min(want, free);
  if (want == 0) return 0;
  // Every slot taken shrinks the share. Bisection finds the largest number that fits the share left by it.
  std::size_t low = used == 0 ? 1 : 0, high = want;
  while (low < high) {
    const std::size_t n = low + (high - low + 1) / 2;
    if (used + n <= share_of(free - n))
      low = n;
    else
      high = n - 1;
  }
  used += low;
  used_ += low;
  return low;
}

void ConcurrencyLimiter::release(TypeId type, std::size_t n) {
  if (n == 0) return;
  {
    MutexLock lock(mutex_);
    std::size_t& used = used_by_type_[type];
    TOCSIN_ASSERT(used >= n && used_ >= n);
    used -= n;
    used_ -= n;
  }
  if (on_release_) on_release_();
}

std::size_t ConcurrencyLimiter::running() const {
  MutexLock lock(mutex_);
  return used_;
}

std::size_t ConcurrencyLimiter::running(TypeId type) const {
  MutexLock lock(mutex_);
  auto it = used_by_type_.find(type);
  return it == used_by_type_.end() ? 0 : it->second;
}

std::size_t ConcurrencyLimiter::share() const {
  MutexLock lock(mutex_);
  return share_of(total_ - used_);
}

}  // namespace tocsin

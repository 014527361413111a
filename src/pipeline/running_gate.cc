#include "pipeline/running_gate.h"

#include <algorithm>

#include "base/assert.h"

namespace tocsin {

std::size_t RunningGate::acquire(TypeId type, std::size_t want) {
  std::lock_guard lock(mutex_);
  std::size_t& used = used_by_type_[type];
  const std::size_t n = std::min({want, total_ - used_, per_type_ - used});
  used += n;
  used_ += n;
  return n;
}

void RunningGate::release(TypeId type, std::size_t n) {
  if (n == 0) return;
  {
    std::lock_guard lock(mutex_);
    std::size_t& used = used_by_type_[type];
    TOCSIN_ASSERT(used >= n && used_ >= n);
    used -= n;
    used_ -= n;
  }
  if (on_release_) on_release_();
}

std::size_t RunningGate::running() const {
  std::lock_guard lock(mutex_);
  return used_;
}

std::size_t RunningGate::running(TypeId type) const {
  std::lock_guard lock(mutex_);
  auto it = used_by_type_.find(type);
  return it == used_by_type_.end() ? 0 : it->second;
}

}  // namespace tocsin

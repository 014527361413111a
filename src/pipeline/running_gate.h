// How many claimed jobs this node may hold, per type and in all: the bounds of its memory, beside the
// limits of the types (flow_control.h). A slot is taken before the claim and given back when
// the outcome is written, so everything between the two is bounded whatever the database or a handler does.
//
// Thread: any.
#pragma once

#include <cstddef>
#include <functional>
#include <mutex>
#include <unordered_map>

#include "tocsin/job.h"

namespace tocsin {

class RunningGate {
 public:
  RunningGate(std::size_t total, std::size_t per_type) : total_(total), per_type_(per_type) {}

  // Called after every release, outside the lock: somebody may wait for a slot. REQUIRES: set before the first release.
  void on_release(std::function<void()> callback) { on_release_ = std::move(callback); }

  // Takes up to `want` slots; returns how many it got.
  std::size_t acquire(TypeId type, std::size_t want);
  void release(TypeId type, std::size_t n);

  std::size_t running() const;
  std::size_t running(TypeId type) const;
  std::size_t total() const { return total_; }

 private:
  const std::size_t total_;
  const std::size_t per_type_;
  std::function<void()> on_release_;
  mutable std::mutex mutex_;
  std::size_t used_ = 0;
  std::unordered_map<TypeId, std::size_t> used_by_type_;
};

}  // namespace tocsin

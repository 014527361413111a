// The newest version of something immutable: many readers, replaced as a whole.
#pragma once

#include <memory>
#include <mutex>
#include <utility>

namespace tocsin {

// Thread: any.
template <class T>
class Latest {
 public:
  explicit Latest(std::shared_ptr<const T> first) : value_(std::move(first)) {}
  std::shared_ptr<const T> get() const {
    std::lock_guard lock(mutex_);
    return value_;
  }
  void set(std::shared_ptr<const T> value) {
    std::lock_guard lock(mutex_);
    value_ = std::move(value);
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const T> value_;
};

}  // namespace tocsin

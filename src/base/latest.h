// Latest<T>: holds the newest version of an immutable object. Readers take a shared pointer; a writer replaces it
// whole.
#pragma once

#include <memory>
#include <utility>

#include "base/mutex.h"

namespace tocsin {

// Thread: any.
template <class T>
class Latest {
 public:
  explicit Latest(std::shared_ptr<const T> first) : value_(std::move(first)) {}
  std::shared_ptr<const T> get() const {
    MutexLock lock(mutex_);
    return value_;
  }
  void set(std::shared_ptr<const T> value) {
    MutexLock lock(mutex_);
    value_ = std::move(value);
  }

 private:
  mutable Mutex mutex_;
  std::shared_ptr<const T> value_ TOCSIN_GUARDED_BY(mutex_);
};

}  // namespace tocsin

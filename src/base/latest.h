// Latest<T>: shares the newest version of an immutable object between threads, such as the shard map or the type
// catalog. A writer replaces the object as a whole; readers keep the version that they got.
#pragma once

#include <memory>
#include <utility>

#include "base/mutex.h"

namespace tocsin {

// The mutex is held only while a pointer is copied. Thread: any.
template <class T>
class Latest {
 public:
  // `first` may be null: no version yet.
  explicit Latest(std::shared_ptr<const T> first) : value_(std::move(first)) {}
  // The newest version; null only if null was stored. It stays valid and unchanged while the caller keeps the pointer.
  std::shared_ptr<const T> get() const {
    MutexLock lock(mutex_);
    return value_;
  }
  // Replaces the version that get() returns. If no reader has the old one, it is destroyed here, under the mutex.
  void set(std::shared_ptr<const T> value) {
    MutexLock lock(mutex_);
    value_ = std::move(value);
  }

 private:
  mutable Mutex mutex_;
  std::shared_ptr<const T> value_ TOCSIN_GUARDED_BY(mutex_);
};

}  // namespace tocsin

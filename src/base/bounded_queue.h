// BoundedQueue: a first-in first-out queue between threads, such as the stages of the pipeline. No call waits: a full
// queue refuses a push, an empty one gives nothing, and a push wakes the loop that consumes the queue.
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <iterator>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/waker.h"

namespace tocsin {

// Thread: any.
template <class T>
class BoundedQueue {
 public:
  explicit BoundedQueue(std::size_t capacity, Waker* consumer = nullptr) : capacity_(capacity), consumer_(consumer) {}

  // The loop to wake after each push; null: none. REQUIRES: set before the first push.
  void set_consumer(Waker* consumer) { consumer_ = consumer; }

  // False: full; `item` is untouched.
  bool try_push(T&& item) {
    {
      MutexLock lock(mutex_);
      if (items_.size() >= capacity_) return false;
      items_.push_back(std::move(item));
    }
    if (consumer_) consumer_->wake();
    return true;
  }

  // Moves as many items as fit from the front of `items` into the queue, and returns their number n. `items` keeps its
  // size; its first n elements are moved from.
  std::size_t push_some(std::vector<T>& items) {
    std::size_t n = 0;
    {
      MutexLock lock(mutex_);
      n = std::min(items.size(), capacity_ - std::min(capacity_, items_.size()));
      items_.insert(items_.end(), std::make_move_iterator(items.begin()),
                    std::make_move_iterator(items.begin() + static_cast<std::ptrdiff_t>(n)));
    }
    if (n > 0 && consumer_) consumer_->wake();
    return n;
  }

  // Removes and returns up to `most` items, oldest first; empty when there are none.
  std::vector<T> pop_some(std::size_t most) {
    std::vector<T> out;
    MutexLock lock(mutex_);
    const auto n = static_cast<std::ptrdiff_t>(std::min(most, items_.size()));
    out.reserve(static_cast<std::size_t>(n));
    std::move(items_.begin(), items_.begin() + n, std::back_inserter(out));
    items_.erase(items_.begin(), items_.begin() + n);
    return out;
  }

  std::size_t size() const {
    MutexLock lock(mutex_);
    return items_.size();
  }
  std::size_t capacity() const { return capacity_; }

 private:
  const std::size_t capacity_;
  Waker* consumer_;
  mutable Mutex mutex_;
  std::deque<T> items_ TOCSIN_GUARDED_BY(mutex_);
};

}  // namespace tocsin

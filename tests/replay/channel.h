// Work for the lanes: several threads take what others hand over, and wait when there is none.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <utility>
#include <vector>

namespace tocsin::replay {

// Thread: any.
template <class T>
class Channel {
 public:
  void push(T item) {
    {
      const std::scoped_lock lock(mutex_);
      items_.push_back(std::move(item));
    }
    changed_.notify_one();
  }

  // Up to `most`, oldest first; waits for one. Empty: closed, and all is taken.
  std::vector<T> take(std::size_t most) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return is_closed_ || !items_.empty(); });
    std::vector<T> taken;
    while (taken.size() < most && !items_.empty()) {
      taken.push_back(std::move(items_.front()));
      items_.pop_front();
    }
    return taken;
  }

  void close() {
    {
      const std::scoped_lock lock(mutex_);
      is_closed_ = true;
    }
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<T> items_;
  bool is_closed_ = false;
};

}  // namespace tocsin::replay

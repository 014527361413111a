// AllAnswers: collects the answers to a question that was asked in several places, such as databases.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "base/mutex.h"

namespace tocsin {

// Thread: any.
template <class T>
class AllAnswers {
 public:
  using Done = std::function<void(std::vector<T>)>;
  // REQUIRES: size > 0.
  AllAnswers(std::size_t size, Done done) : done_(std::move(done)), left_(size), answers_(size) {}

  // The answer with this index; call once for each. The last call passes all answers, in order, to Done.
  void take(std::size_t index, T answer) {
    MutexLock lock(mutex_);
    answers_[index] = std::move(answer);
    if (--left_ > 0) return;
    std::vector<T> all;
    all.swap(answers_);
    lock.unlock();
    done_(std::move(all));
  }

 private:
  const Done done_;
  Mutex mutex_;
  std::size_t left_ TOCSIN_GUARDED_BY(mutex_);
  std::vector<T> answers_ TOCSIN_GUARDED_BY(mutex_);
};

}  // namespace tocsin

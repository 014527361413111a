// Attempts that were handed to threads which may outlive the node.
#pragma once

#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "tocsin/handler.h"

namespace tocsin {

// Every attempt that was handed over and has not ended; whoever takes an attempt out calls its finish, so it is called
// once.
// Thread: any.
class InFlight {
 public:
  // 0: closed, `finish` is untouched.
  std::uint64_t add(Handler::Finish& finish) {
    std::lock_guard lock(mutex_);
    if (is_closed_) return 0;
    attempts_.emplace(++last_, Attempt{std::move(finish)});
    return last_;
  }

  // False: it was ended by close(), and must not begin.
  bool begin(std::uint64_t attempt) {
    std::lock_guard lock(mutex_);
    const auto it = attempts_.find(attempt);
    if (it == attempts_.end()) return false;
    it->second.has_begun = true;
    return true;
  }

  void end(std::uint64_t attempt, Outcome outcome) {
    Handler::Finish finish;
    {
      std::lock_guard lock(mutex_);
      const auto it = attempts_.find(attempt);
      if (it == attempts_.end()) return;  // ended by close()
      finish = std::move(it->second.finish);
      attempts_.erase(it);
    }
    finish(std::move(outcome));
  }

  void close() {
    std::unordered_map<std::uint64_t, Attempt> left;
    {
      std::lock_guard lock(mutex_);
      is_closed_ = true;
      left.swap(attempts_);
    }
    for (const auto& [number, attempt] : left)
      attempt.finish(attempt.has_begun ? Outcome::retry("shutting down") : Outcome::not_started(Duration(0)));
  }

 private:
  struct Attempt {
    Handler::Finish finish;
    bool has_begun = false;
  };

  std::mutex mutex_;
  std::unordered_map<std::uint64_t, Attempt> attempts_;
  std::uint64_t last_ = 0;
  bool is_closed_ = false;
};

}  // namespace tocsin

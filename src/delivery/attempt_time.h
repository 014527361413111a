// AttemptTime: the mean duration of a type's attempts. WorkerShare: the capacity of workers that follows from it.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "tocsin/clock.h"
#include "tocsin/start_pool.h"

namespace tocsin {

// A moving mean over about the last 16 samples, at least a microsecond; a millisecond before the first.
// Thread: any.
class AttemptTime {
 public:
  Duration mean() const { return Duration(mean_us_.load()); }

  void took(Duration time) {
    const std::int64_t mean = mean_us_.load();  // two at once lose one of the samples, which does no harm
    mean_us_ = std::max<std::int64_t>(1, mean + (time.count() - mean) / 16);
  }

  // The number of attempts of mean duration that fit into `time`, one after the other: 1 to `most`.
  std::size_t fitting(Duration time, std::size_t most) const {
    return std::clamp<std::size_t>(static_cast<std::size_t>(time / mean()), 1, most);
  }

 private:
  std::atomic<std::int64_t> mean_us_{1000};
};

// The start pool of a type on shared workers: its capacity is the number of attempts that they finish within `ahead`.
// Thread: any.
class WorkerShare final : public StartPool {
 public:
  // `most`: attempts per worker at most.
  WorkerShare(int workers, Duration ahead, std::size_t most) : workers_(workers), ahead_(ahead), most_(most) {}

  AttemptTime& time() { return time_; }
  std::size_t capacity() const override { return time_.fitting(ahead_, most_) * static_cast<std::size_t>(workers_); }
  double starts_per_s() const override { return workers_ / std::chrono::duration<double>(time_.mean()).count(); }

 private:
  const int workers_;  // threads
  const Duration ahead_;
  const std::size_t most_;
  AttemptTime time_;
};

}  // namespace tocsin

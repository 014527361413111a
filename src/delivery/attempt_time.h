// AttemptTime: the mean duration of one type's attempts. WorkerShare: the number of that type's jobs that may be
// claimed at a time, computed from the mean. Used by handlers that run attempts on worker threads (`cpp`, `sql`), one
// object per type.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "tocsin/clock.h"
#include "tocsin/start_pool.h"

namespace tocsin {

// An exponential mean: each sample counts a sixteenth. It starts at one millisecond, and is at least one microsecond.
// Thread: any.
class AttemptTime {
 public:
  Duration mean() const { return Duration(mean_us_.load()); }

  // Call when an attempt has ended. `time`: its running time, without its wait for a thread.
  void took(Duration time) {
    const std::int64_t mean = mean_us_.load();  // concurrent calls may lose a sample, which does no harm
    mean_us_ = std::max<std::int64_t>(1, mean + (time.count() - mean) / 16);
  }

  // The number of attempts of mean duration that fit into `time`, one after the other: 1 to `most`.
  std::size_t fitting(Duration time, std::size_t most) const {
    return std::clamp<std::size_t>(static_cast<std::size_t>(time / mean()), 1, most);
  }

 private:
  std::atomic<std::int64_t> mean_us_{1000};
};

// The start pool of one type (it bounds the type's claimed jobs), on worker threads that all types share. Its capacity
// is the number of attempts that all threads finish within `ahead`. So no thread waits for the next claim, and claimed
// jobs do not wait long. Thread: any.
class WorkerShare final : public StartPool {
 public:
  // `workers`: number of threads. `most`: upper bound of the attempts per thread; the lower bound is one.
  WorkerShare(int workers, Duration ahead, std::size_t most) : workers_(workers), ahead_(ahead), most_(most) {}

  AttemptTime& time() { return time_; }
  std::size_t capacity() const override { return time_.fitting(ahead_, most_) * static_cast<std::size_t>(workers_); }
  double starts_per_s() const override { return workers_ / std::chrono::duration<double>(time_.mean()).count(); }

 private:
  const int workers_;
  const Duration ahead_;
  const std::size_t most_;
  AttemptTime time_;
};

}  // namespace tocsin

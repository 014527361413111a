// AttemptTime: the mean duration of one type's attempts. WorkerShare: the number of its jobs that may be claimed at
// once, computed from it. Used by the handlers that run attempts on worker threads (`cpp`, `sql`), one per type.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "tocsin/clock.h"
#include "tocsin/start_pool.h"

namespace tocsin {

// An exponential mean: each sample counts a sixteenth. It starts at a millisecond and is at least a microsecond.
// Thread: any.
class AttemptTime {
 public:
  Duration mean() const { return Duration(mean_us_.load()); }

  // Call when an attempt has ended. `time`: how long it ran, without its wait for a thread.
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

// The start pool of one type on worker threads that all types share. Its capacity is the number of attempts that all
// threads together finish within `ahead`: enough that no thread waits for the next claim, and few enough that claimed
// jobs do not wait long. Thread: any.
class WorkerShare final : public StartPool {
 public:
  // `workers`: threads. `most`: bound of the attempts per thread; at least one per thread is allowed.
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

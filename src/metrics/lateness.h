// LatenessWindow: percentiles of the lateness of jobs (first start minus due time) on this node in the last minutes,
// for GET /v1/stats and `tocsin stats`. Owned by Metrics.
#pragma once

#include <array>
#include <cstdint>

#include "api/backend.h"
#include "base/mutex.h"
#include "core/log_histogram.h"
#include "tocsin/clock.h"

namespace tocsin {

// It has one histogram for each of the last five minutes of the clock, so a summary covers four to five minutes. The
// buckets are logarithmic (core/log_histogram.h), so percentiles are approximate; the maximum is exact. Thread: any.
class LatenessWindow {
 public:
  // Counts the first start of a job. A negative lateness counts as 0. `now`: the same monotonic clock in all calls.
  void record(Duration lateness, MonoTime now);
  LatencySummary summary(MonoTime now) const;  // in milliseconds; all 0 if no job has started

 private:
  static constexpr int kSlices = 5;  // minutes
  static constexpr int kBuckets = kHistogramBuckets;
  struct Slice {
    std::int64_t minute = -1;  // which minute of the clock; -1: none yet
    std::int64_t max_us = 0;
    std::array<std::uint32_t, kBuckets> counts{};
  };

  mutable Mutex mutex_;
  std::array<Slice, kSlices> slices_ TOCSIN_GUARDED_BY(mutex_);
};

}  // namespace tocsin

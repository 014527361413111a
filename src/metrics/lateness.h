// Percentiles of lateness over the last minutes, for the dashboard and `tocsin stats`.
#pragma once

#include <array>
#include <cstdint>

#include "api/backend.h"
#include "base/mutex.h"
#include "core/log_histogram.h"
#include "tocsin/clock.h"

namespace tocsin {

// Counts in the buckets of log_histogram.h, kept in slices of a minute. Thread: any.
class LatenessWindow {
 public:
  void record(Duration lateness, MonoTime now);
  LatencySummary summary(MonoTime now) const;

 private:
  static constexpr int kSlices = 5;  // minutes
  static constexpr int kBuckets = kHistogramBuckets;
  struct Slice {
    std::int64_t minute = -1;
    std::int64_t max_us = 0;
    std::array<std::uint32_t, kBuckets> counts{};
  };

  mutable Mutex mutex_;
  std::array<Slice, kSlices> slices_ TOCSIN_GUARDED_BY(mutex_);
};

}  // namespace tocsin

// Lateness of the last minutes, for people.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>

#include "api/backend.h"
#include "tocsin/clock.h"

namespace tocsin {

// Counts in logarithmic buckets of at most 1/16 relative width, kept in slices of a minute (the idea of HdrHistogram,
// G. Tene). Thread: any.
class LatenessWindow {
 public:
  void record(Duration lateness, MonoTime now);
  LatencySummary summary(MonoTime now) const;

 private:
  static constexpr int kSlices = 5;  // minutes
  static constexpr int kSubBits = 4;
  static constexpr int kBuckets = (64 - kSubBits) << kSubBits;
  struct Slice {
    std::int64_t minute = -1;
    std::int64_t max_us = 0;
    std::array<std::uint32_t, kBuckets> counts{};
  };
  static int bucket_of(std::uint64_t us);
  static double value_of(int bucket);

  mutable std::mutex mutex_;
  std::array<Slice, kSlices> slices_;
};

}  // namespace tocsin

// Maps a duration in microseconds to a histogram bucket of at most 1/16 relative width, and back (the idea of
// HdrHistogram, G. Tene). Rows of the table report_histogram hold bucket numbers, and the SQL function
// histogram_quantiles computes the same values from them. DO NOT CHANGE.
#pragma once

#include <bit>
#include <cstdint>

namespace tocsin {

inline constexpr int kHistogramSubBits = 4;
inline constexpr int kHistogramBuckets = (64 - kHistogramSubBits) << kHistogramSubBits;

// The bucket of `us` microseconds, 0 to kHistogramBuckets - 1. REQUIRES: us < 2^63.
constexpr int histogram_bucket(std::uint64_t us) {
  if (us < (1U << kHistogramSubBits)) return static_cast<int>(us);
  const int exponent = static_cast<int>(std::bit_width(us)) - 1 - kHistogramSubBits;
  return static_cast<int>(((exponent + 1) << kHistogramSubBits) +
                          static_cast<int>((us >> exponent) & ((1U << kHistogramSubBits) - 1)));
}

// The middle of the bucket, in microseconds; below 16 the value itself.
constexpr double histogram_value(int bucket) {
  if (bucket < (1 << kHistogramSubBits)) return bucket;
  const int exponent = (bucket >> kHistogramSubBits) - 1;
  const std::uint64_t low =
      static_cast<std::uint64_t>((1 << kHistogramSubBits) + (bucket & ((1 << kHistogramSubBits) - 1))) << exponent;
  return static_cast<double>(low) + static_cast<double>(std::uint64_t{1} << exponent) / 2;
}

}  // namespace tocsin

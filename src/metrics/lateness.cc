#include "metrics/lateness.h"

#include <algorithm>
#include <memory>

namespace tocsin {
namespace {

std::int64_t minute_of(MonoTime now) { return now.time_since_epoch() / std::chrono::minutes(1); }

}  // namespace

void LatenessWindow::record(Duration lateness, MonoTime now) {
  const std::int64_t us = std::max<std::int64_t>(0, lateness.count());
  const std::int64_t minute = minute_of(now);
  MutexLock lock(mutex_);
  Slice& slice = slices_[static_cast<std::size_t>(minute % kSlices)];
  if (slice.minute != minute) slice = Slice{minute, 0, {}};
  ++slice.counts[static_cast<std::size_t>(histogram_bucket(static_cast<std::uint64_t>(us)))];
  slice.max_us = std::max(slice.max_us, us);
}

LatencySummary LatenessWindow::summary(MonoTime now) const {
  auto counts = std::make_unique<std::array<std::uint64_t, kBuckets>>();
  counts->fill(0);
  LatencySummary out;
  {
    const std::int64_t minute = minute_of(now);
    MutexLock lock(mutex_);
    for (const Slice& slice : slices_) {
      if (slice.minute <= minute - kSlices) continue;
      for (std::size_t i = 0; i < kBuckets; ++i) {
        (*counts)[i] += slice.counts[i];
        out.n += slice.counts[i];
      }
      out.max = std::max(out.max, static_cast<double>(slice.max_us) / 1000);
    }
  }
  const auto quantile = [&](double q) {
    const auto wanted = static_cast<std::uint64_t>(q * static_cast<double>(out.n));
    std::uint64_t seen = 0;
    for (std::size_t i = 0; i < kBuckets; ++i) {
      seen += (*counts)[i];
      if (seen > wanted) return std::min(out.max, histogram_value(static_cast<int>(i)) / 1000);
    }
    return out.max;
  };
  if (out.n == 0) return out;
  out.p50 = quantile(0.5);
  out.p90 = quantile(0.9);
  out.p99 = quantile(0.99);
  return out;
}

}  // namespace tocsin

// ReportHistogram: the lateness of first starts, or the durations of attempts, of one type on this node in a slot of 15
// minutes. ReportBuffer (src/maintenance) fills it; the housekeeping adds it to the report tables.
#pragma once

#include <cstdint>
#include <map>

#include "tocsin/job.h"

namespace tocsin {

// What is measured: lateness of first starts, or duration of attempts with this end. Stored. DO NOT CHANGE.
enum class ReportKind : std::int16_t { lateness = 0, done = 2, dead = 4, retry = 8 };

struct ReportHistogram {
  ReportKind kind = ReportKind::lateness;
  WallTime slot{};  // start of its quarter of an hour
  TypeId type_id = 0;
  std::int64_t n = 0;       // samples
  std::int64_t missed = 0;  // lateness only: starts later than the type's target
  Duration max{0};
  std::map<int, std::int64_t> buckets;  // samples by histogram_bucket() (log_histogram.h)
};

// The start of the slot of 15 minutes that contains `at`.
inline WallTime report_slot(WallTime at) {
  constexpr Duration kQuarter = std::chrono::minutes(15);
  return WallTime(at.time_since_epoch() - at.time_since_epoch() % kQuarter);
}

}  // namespace tocsin

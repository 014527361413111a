#include "maintenance/report_buffer.h"

#include <algorithm>
#include <utility>

#include "core/log_histogram.h"

namespace tocsin {

void ReportBuffer::started(TypeId type, Duration lateness) {
  const auto context = context_();
  if (!context) return;
  // A job that was run by hand may start before its deadline.
  lateness = std::max(lateness, Duration(0));
  const BizType* known = context->catalog->find(type);
  add(ReportKind::lateness, context->now, type, lateness, known && known->slo && lateness > known->slo->lateness);
}

void ReportBuffer::ended(TypeId type, EventSink::Ending ending, Duration took) {
  const auto context = context_();
  if (!context) return;
  const ReportKind kind = ending == EventSink::Ending::done   ? ReportKind::done
                          : ending == EventSink::Ending::dead ? ReportKind::dead
                                                              : ReportKind::retry;
  add(kind, context->now, type, std::max(took, Duration(0)), false);
}

void ReportBuffer::add(ReportKind kind, WallTime at, TypeId type, Duration value, bool is_missed) {
  const WallTime slot = report_slot(at);
  MutexLock lock(mutex_);
  auto it = histograms_.find({slot, type, kind});
  if (it == histograms_.end()) {
    if (histograms_.size() >= kMost) return;
    it = histograms_.try_emplace({slot, type, kind}).first;
    it->second.kind = kind;
    it->second.slot = slot;
    it->second.type_id = type;
  }
  ReportHistogram& histogram = it->second;
  ++histogram.n;
  histogram.missed += is_missed;
  histogram.max = std::max(histogram.max, value);
  ++histogram.buckets[histogram_bucket(static_cast<std::uint64_t>(value.count()))];
}

std::vector<ReportHistogram> ReportBuffer::take() {
  std::vector<ReportHistogram> taken;
  MutexLock lock(mutex_);
  for (auto& [key, histogram] : std::exchange(histograms_, {})) taken.push_back(std::move(histogram));
  return taken;
}

}  // namespace tocsin

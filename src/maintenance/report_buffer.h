// ReportBuffer: collects lateness and durations of this node's attempts in histograms, one per type, kind of event and
// quarter of an hour. Every ten seconds housekeeping takes the histograms and writes them to the report tables of its
// database. Owned by Database (node/database.h).
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <vector>

#include "base/mutex.h"
#include "core/report_histogram.h"
#include "ports/biz_type.h"
#include "ports/event.h"

namespace tocsin {

// Thread: any.
class ReportBuffer {
 public:
  struct Context {
    WallTime now{};  // by the database's clock
    std::shared_ptr<const TypeCatalog> catalog;
  };
  // `context`: called for each event, on the thread of the event. nullopt: the database's clock is not known yet, and
  // the event is dropped.
  explicit ReportBuffer(std::function<std::optional<Context>()> context) : context_(std::move(context)) {}

  // The first start of a job; a negative lateness counts as 0.
  void started(TypeId type, Duration lateness);
  void ended(TypeId type, EventSink::Ending ending, Duration took);
  // Removes and returns the histograms of all events since the last call.
  std::vector<ReportHistogram> take();

  // At most this many histograms wait, which can happen while the database does not answer. An event that needs a
  // further one is dropped.
  static constexpr std::size_t kMost = 20'000;

 private:
  // `is_missed`: the attempt started later than the type's target.
  void add(ReportKind kind, WallTime at, TypeId type, Duration value, bool is_missed);

  const std::function<std::optional<Context>()> context_;
  Mutex mutex_;
  std::map<std::tuple<WallTime, TypeId, ReportKind>, ReportHistogram> histograms_ TOCSIN_GUARDED_BY(mutex_);
};

}  // namespace tocsin

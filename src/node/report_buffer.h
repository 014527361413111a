// Collects lateness and durations of this node's attempts in histograms, until housekeeping writes them to the report
// tables of one database (every ten seconds).
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
    WallTime now{};  // of the database
    std::shared_ptr<const TypeCatalog> catalog;
  };
  // `context`: nullopt while the database's clock is unknown; nothing is recorded then.
  explicit ReportBuffer(std::function<std::optional<Context>()> context) : context_(std::move(context)) {}

  void started(TypeId type, Duration lateness);
  void ended(TypeId type, EventSink::Ending ending, Duration took);
  // Removes and returns the histograms of all events since the last call.
  std::vector<ReportHistogram> take();

  // While the database does not answer, at most this many histograms wait here; events that need a further one are
  // dropped.
  static constexpr std::size_t kMost = 20'000;

 private:
  void add(ReportKind kind, WallTime at, TypeId type, Duration value, bool is_missed);

  const std::function<std::optional<Context>()> context_;
  Mutex mutex_;
  std::map<std::tuple<WallTime, TypeId, ReportKind>, ReportHistogram> histograms_ TOCSIN_GUARDED_BY(mutex_);
};

}  // namespace tocsin

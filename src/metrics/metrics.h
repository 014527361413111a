// Metrics: the node's EventSink (ports/event.h, which explains the events). It turns events of the engines, the
// membership and the REST API into Prometheus metrics and the percentiles of /v1/stats. Failures also become log lines,
// at most one per stage and second. Owned by the node (node/node_impl.h), one per node.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "metrics/failure_log.h"
#include "metrics/lateness.h"
#include "metrics/type_labels.h"
#include "ports/biz_type.h"
#include "ports/event.h"

namespace prometheus {
class Registry;
class Counter;
class Histogram;
class Gauge;
template <class T>
class Family;
}  // namespace prometheus

namespace tocsin {

struct LabelledValue {
  std::map<std::string, std::string> labels;
  double value = 0;
};

// The data members are the families of metrics, and for each family the label sets that were seen. Thread: any.
class Metrics final : public EventSink {
 public:
  explicit Metrics(const Clock& clock);  // REQUIRES: `clock` outlives it
  ~Metrics() override;

  void count(Counter what, std::int64_t n) override;
  void started(TypeId type, Duration lateness) override;
  void ended(TypeId type, Ending ending, Duration took) override;
  void ended_elsewhere(TypeId type, Ending ending, std::int64_t n) override;
  // An HTTP request was answered. `route`: path template of its route; empty: none.
  void answered(const std::string& route, int status);
  void waited(Duration time);  // a request waited this long for a database thread
  // How long a request whose row was locked waited for a thread that may wait for locks.
  void waited_behind_locks(Duration time);
  // One step of a stage took this long, its database calls included.
  void stepped(std::string_view stage, Duration took);
  void failed(std::string_view stage, const Error& error) override;

  // `catalog` (not null): the types. Has their targets of lateness, and their names for the label biz_type. A type that
  // is first seen while it is not in the catalog is labelled with its number.
  void set_catalog(std::shared_ptr<const TypeCatalog> catalog);
  // Adds a gauge whose value `read` returns. text() calls `read` on its own thread and under this object's lock, so
  // `read` must neither call this object nor wait long. REQUIRES: called before the first text().
  using Labels = std::map<std::string, std::string>;
  void add_gauge(const std::string& name, const std::string& help, std::function<double()> read, const Labels& = {});
  // As add_gauge(), for a value per label set. A label set that `read` no longer returns is removed.
  void add_gauges(const std::string& name, const std::string& help, std::function<std::vector<LabelledValue>()> read);
  // As add_gauge(), for a value that only grows.
  void add_counter(const std::string& name, const std::string& help, std::function<double()> read);

  LatencySummary lateness() const;  // of the last four to five minutes, in milliseconds
  std::string text() const;         // Prometheus text exposition format

 private:
  std::string label_of(TypeId type) TOCSIN_REQUIRES(mutex_);
  struct Starts {
    prometheus::Histogram* lateness = nullptr;
    prometheus::Counter* missed = nullptr;  // nullptr: the type had no target yet
  };
  struct Ends {
    prometheus::Counter* n = nullptr;
    prometheus::Histogram* took = nullptr;  // nullptr: no handler of this node has made such an attempt yet
  };
  // `is_timed`: the family with the durations of attempts is included.
  Ends ends_of(TypeId type, Ending ending, bool is_timed);
  // Returns the histogram of the type. Adds one to `missed` if the lateness is above the target of the type.
  prometheus::Histogram& note_start(TypeId type, Duration lateness);

  const Clock& clock_;
  std::shared_ptr<prometheus::Registry> registry_;
  std::array<prometheus::Counter*, kCounters> counters_{};
  prometheus::Family<prometheus::Histogram>* lateness_family_;
  prometheus::Family<prometheus::Counter>* missed_family_;
  prometheus::Family<prometheus::Histogram>* step_family_;
  prometheus::Family<prometheus::Counter>* error_family_;
  prometheus::Family<prometheus::Histogram>* attempt_family_;
  prometheus::Family<prometheus::Counter>* outcome_family_;
  prometheus::Family<prometheus::Counter>* request_family_;
  prometheus::Histogram* pool_wait_;
  prometheus::Histogram* lock_pool_wait_;
  LatenessWindow window_;
  mutable Mutex mutex_;
  std::shared_ptr<const TypeCatalog> catalog_ TOCSIN_GUARDED_BY(mutex_);
  std::map<TypeId, Starts> starts_ TOCSIN_GUARDED_BY(mutex_);
  TypeLabels labels_ TOCSIN_GUARDED_BY(mutex_);
  std::map<std::pair<TypeId, Ending>, Ends> ends_ TOCSIN_GUARDED_BY(mutex_);
  std::map<std::pair<std::string, int>, prometheus::Counter*> requests_ TOCSIN_GUARDED_BY(mutex_);
  std::map<std::string, prometheus::Histogram*, std::less<>> by_stage_ TOCSIN_GUARDED_BY(mutex_);
  std::vector<std::pair<prometheus::Gauge*, std::function<double()>>> gauges_ TOCSIN_GUARDED_BY(mutex_);
  struct GaugeFamily {
    prometheus::Family<prometheus::Gauge>* family;
    std::function<std::vector<LabelledValue>()> read;
    mutable std::map<std::map<std::string, std::string>, prometheus::Gauge*> gauges;
  };
  std::vector<GaugeFamily> gauge_families_ TOCSIN_GUARDED_BY(mutex_);
  std::vector<std::pair<prometheus::Counter*, std::function<double()>>> read_counters_ TOCSIN_GUARDED_BY(mutex_);
  FailureLog failure_log_ TOCSIN_GUARDED_BY(mutex_);
};

}  // namespace tocsin

// DatabaseEvents: the EventSink (ports/event.h) of one database. It passes events on to the node's metrics and to the
// reports of this database. When a call has failed as unavailable it requests a check of whether the database still
// answers. Owned by Database (node/database.h).
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "maintenance/outage_watch.h"
#include "maintenance/report_buffer.h"
#include "metrics/metrics.h"
#include "ports/event.h"

namespace tocsin {

// Thread: any.
class DatabaseEvents final : public EventSink {
 public:
  // `prefix`: put before the messages of failures, such as the database's name. `check`: requests the check from
  // housekeeping; called after a failure that may be the beginning of an outage, on the thread that reports the
  // failure. REQUIRES: the references outlive it.
  DatabaseEvents(Metrics& metrics, ReportBuffer& reports, OutageWatch& watch, std::string prefix,
                 std::function<void()> check)
      : metrics_(metrics), reports_(reports), watch_(watch), prefix_(std::move(prefix)), check_(std::move(check)) {}
  void count(Counter what, std::int64_t n) override { metrics_.count(what, n); }
  void started(TypeId type, Duration lateness) override {
    metrics_.started(type, lateness);
    reports_.started(type, lateness);
  }
  void ended(TypeId type, Ending ending, Duration took) override {
    metrics_.ended(type, ending, took);
    reports_.ended(type, ending, took);
  }
  void ended_elsewhere(TypeId type, Ending ending, std::int64_t n) override {
    metrics_.ended_elsewhere(type, ending, n);
  }
  void failed(std::string_view stage, const Error& error) override;
  // As failed(), without a check: for failures of housekeeping, which makes the checks.
  void note_failure(std::string_view stage, const Error& error);

 private:
  Metrics& metrics_;
  ReportBuffer& reports_;
  OutageWatch& watch_;
  const std::string prefix_;
  const std::function<void()> check_;
};

}  // namespace tocsin

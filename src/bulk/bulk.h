// Bulk: a bulk operation, one action on every job that matches a filter. It runs in small batches, and its progress is
// stored. POST /v1/bulk starts it, BulkRunner (bulk_runner.h) runs it, and a BulkStore (bulk_store.h) keeps it. Plain
// values.
//
// A bulk visits the jobs in order of job_id, each once, even if a job still matches after its change. Jobs that another
// transaction has locked are visited once more, at the end. It matches only jobs that were created before it began; a
// retry, only jobs that died before it began. A job is changed only if it matches at that moment, under the lock of its
// row. A job that has come to match since the bulk began, such as a running job that became pending again, is changed,
// too, unless the bulk has passed its id. So `changed` may exceed `matched`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tocsin/job.h"

namespace tocsin {

// run: the job becomes due now. retry: a dead job becomes pending.
enum class BulkAction { cancel, reschedule, run, retry };
// stopped: on request. failed: a database refused the values of the bulk.
enum class BulkState { running, done, stopped, failed };

std::string_view to_string(BulkAction action);
std::string_view to_string(BulkState state);
// nullopt: there is no such action or state.
std::optional<BulkAction> bulk_action_from(std::string_view name);
std::optional<BulkState> bulk_state_from(std::string_view name);

// The status that a job must have for this action: dead for retry, pending for the others.
JobStatus status_changed_by(BulkAction action);

// A job matches if all fields that are set hold. REQUIRES: at least one is set.
struct BulkFilter {
  std::optional<std::string> biz_id;
  std::optional<TypeId> type_id;
  std::optional<WallTime> from, to;   // action_time in [from, to)
  std::optional<std::string> reason;  // retry only: the normalised last error, as in table report_dead
};

struct BulkRequest {
  BulkAction action = BulkAction::cancel;
  BulkFilter filter;
  std::string filter_json;              // the filter as JSON, for display; types by name
  std::optional<WallTime> action_time;  // reschedule: the new deadline; not with `delay`
  std::optional<Duration> delay;        // reschedule: the new deadline, counted from the start of the bulk
  std::optional<Duration> spread;       // reschedule: deadlines are spread evenly over this time after the new one
  std::optional<double> rate_per_s;     // jobs changed per second, at most; nullopt: as fast as batches go
  std::string reason;                   // why, in the caller's words
  std::string actor;                    // name of the caller's API token; empty: the node has no tokens
};

struct Bulk {
  std::int64_t bulk_id = 0;
  BulkRequest request;
  BulkState state = BulkState::running;
  std::int64_t matched = 0;  // jobs that matched when the bulk began
  std::int64_t changed = 0;  // jobs changed until now
  bool is_stop_requested = false;
  WallTime started_at{};
  std::optional<WallTime> finished_at;
  std::string error;  // of a bulk that failed

  // Jobs that matched and were not changed, less those that were changed without having matched. Known when the bulk
  // has ended; 0 before, and never negative.
  std::int64_t missed() const { return finished_at && matched > changed ? matched - changed : 0; }
};

}  // namespace tocsin

// A bulk operation: one action applied to every job that matches a filter, in small batches, with its progress stored.
//
// A bulk matches jobs that were created before it began; a retry matches jobs that died before it began. It visits them
// in the order of job_id, so it does not visit a job again that it has moved within its own filter. Only jobs that
// another transaction held locked are visited once more, at the end.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tocsin/job.h"

namespace tocsin {

enum class BulkAction { cancel, reschedule, run, retry };
enum class BulkState { running, done, stopped, failed };

std::string_view to_string(BulkAction action);
std::string_view to_string(BulkState state);
// nullopt: no such name.
std::optional<BulkAction> bulk_action_from(std::string_view name);
std::optional<BulkState> bulk_state_from(std::string_view name);

// The status that a job must have for this action: dead for retry, pending for the others.
JobStatus status_changed_by(BulkAction action);

// All fields that are set must hold. REQUIRES: at least one is set.
struct BulkFilter {
  std::optional<std::string> biz_id;
  std::optional<TypeId> type_id;
  std::optional<WallTime> from, to;   // action_time in [from, to)
  std::optional<std::string> reason;  // of dead jobs: the normalised text of the last error, as in report_dead
};

struct BulkRequest {
  BulkAction action = BulkAction::cancel;
  BulkFilter filter;
  std::string filter_json;              // the filter as the caller sent it
  std::optional<WallTime> action_time;  // reschedule: the new deadline
  std::optional<Duration> delay;        // reschedule: the new deadline, counted from the start of the bulk
  std::optional<Duration> spread;       // reschedule: deadlines are spread evenly over this time after the new one
  std::optional<double> rate_per_s;     // jobs changed per second, at most; nullopt: as fast as batches go
  std::string reason;                   // why, in the caller's words
  std::string actor;                    // name of the caller's token
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

  // Jobs that matched and will not be changed: known once the bulk has ended, 0 before.
  std::int64_t missed() const { return finished_at && matched > changed ? matched - changed : 0; }
};

}  // namespace tocsin

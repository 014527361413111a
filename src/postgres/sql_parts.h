// SQL fragments that several statements of queries.cc share: counting into the reports, moving a row to history.
#pragma once

#include <string>
#include <vector>

namespace tocsin::sql {

// What the reports count. Stored in job_count_delta and read by fold_counts. DO NOT CHANGE.
enum class ReportEvent {
  created = 1,
  done = 2,
  cancelled = 3,
  dead = 4,
  dropped_late = 5,  // dead as well
  revived = 6,
  attempt = 7,
  retried = 8,
  fired = 9,        // an attempt and done
  given_back = 10,  // an attempt less
};
std::string code(ReportEvent event);

inline const std::string kCountInto =
    "INSERT INTO tocsin.job_count_delta (type_id, status, n, detail, event, sample_job_id, reason) ";

// Counts the final event of each row `d` of the table expression `from`, by the day of its creation (report_outcome).
std::string count_end(const std::string& from, const std::string& status, ReportEvent event,
                      const std::string& reason = "");

// The rows of `from` leave the status `left`; then `events` (see count_end).
std::string count_move(const std::string& from, const std::string& left, const std::string& events);

inline const std::string kHistoryInto =
    "(job_id, action_time, fire_at, gmt_create, started_at, late_from, finished_at, type_id, shard, status, attempts, "
    "max_attempts, biz_id, idempotency_key, body_hash, node, traceparent, attribute, errors)";

// The select list that turns a live row `d` into a row of history.
std::string history_select(const std::string& status, const std::string& started_at, const std::string& attempts,
                           const std::string& node, const std::string& errors);

struct ArrayColumn {
  const char* array;
  const char* name;
};

// Arrays side by side, a row per element, as a table k. In the select list: a table function of many arrays puts each
// into a store of its own first, which was a fifth of a create.
std::string side_by_side(const std::vector<ArrayColumn>& columns);

}  // namespace tocsin::sql

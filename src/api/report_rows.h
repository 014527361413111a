// The shapes of all reports (GET /v1/reports/...), and the merge of their rows from several databases. Used by the
// handlers of reports and of /v1/overview. Thread: any.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ports/report_store.h"

namespace tocsin {

// How a column's values in rows with the same keys, one per database, become one value. Nulls are left out. A row's
// histogram is its member `buckets` (ReportStore::report).
enum class Merge {
  key,    // rows with the same keys become one row; rows of Report::audit are never merged
  sum,    // of integers
  min,    // the earliest time
  max,    // the largest number or latest time
  first,  // any that is not null
  last,   // that of the row with the latest value of its column last_at
  all,    // true when all are
  p50,    // percentiles of the merged histograms; without any, the value of the first row
  p90,
  p99,
  // Computed from the sums of the columns n and missed, and the column target_share: the part of first starts that must
  // be in time.
  share,   // part of the n starts that were in time, 0..1; 1 without any
  budget,  // part of the allowed misses that is left, at most 1; negative: overdrawn
  is_met,  // whether no more were missed than target_share allows
};

struct ReportColumn {
  const char* name;
  Merge merge;
};

struct ReportShape {
  Report report;
  const char* name;                   // in the path
  const char* summary;                // in the API description
  std::vector<ReportColumn> columns;  // in the order shown; rows are sorted by the keys
  bool has_range = true;              // the first key is a time: databases apply from, to and cursor to it
  bool is_newest_first = true;        // with has_range: sorted by falling time, then by the other keys
};

const std::vector<ReportShape>& report_shapes();    // of the reports that have a path
const ReportShape& report_shape_of(Report report);  // of any report, those used by /v1/overview alone included

// Returns an object as JSON text without its closing brace, so that the caller can add members. It has "items" (`limit`
// rows at most), "next_cursor" (null if no row is left), "columns", and "totals" of these items if the report has
// columns that can be added up. `parts`: the rows of each database, as ReportStore::report returns them (JSON objects);
// with has_range each database must have been asked for one more than `limit`. `after`: keys of the last row of the
// page before; empty: from the beginning. It is used only without has_range, where each database returns all its rows;
// if no row has these keys, the page is empty. `filter`: that of the request, see report_cursor. Throws if a row is not
// JSON.
std::string merged_report(const ReportShape& shape, const std::vector<std::vector<std::string>>& parts, int limit,
                          const std::vector<std::string>& after, const std::string& filter);

// Converts keys, as texts in the order of the columns, to an opaque cursor and back; nullopt: not a cursor of this
// report with this filter, the parameters of the request as one text. Keys of the report audit have one more, which
// tells records of one instant apart.
std::string report_cursor(const ReportShape& shape, const std::string& filter, const std::vector<std::string>& keys);
std::optional<std::vector<std::string>> keys_from_cursor(const ReportShape& shape, const std::string& filter,
                                                         const std::string& cursor);

}  // namespace tocsin

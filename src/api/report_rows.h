// The shapes of all reports (GET /v1/reports/...), and the merge of their rows from several databases.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ports/report_store.h"

namespace tocsin {

// How a column's values in rows with the same keys, one per database, become one value.
enum class Merge {
  key,    // rows with the same keys become one row
  sum,    // of integers
  least,  // the earliest time
  most,   // the largest number or latest time
  first,  // any that is not null
  last,   // that of the row with the latest last_at
  all,    // true when all are
  p50,    // percentiles of the merged histograms
  p90,
  p99,
  share,   // share of starts within the target, computed from the sums
  budget,  // part of the allowed misses that is left; negative: overdrawn
  is_met,  // whether the target is met
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
  bool has_range = true;              // the first key is a time: databases return pages of it, by from, to and cursor
  bool is_newest_first = true;        // with has_range: sorted by falling time
};

const std::vector<ReportShape>& report_shapes();    // of the reports that have a path
const ReportShape& report_shape_of(Report report);  // of any report, those used by /v1/overview alone included

// Returns an object with "items", "next_cursor", "columns" and "totals" (of the items) as JSON text without its closing
// brace, so that the caller can add members. `parts`: the rows of each database, each a JSON object. At most `limit`
// rows are written. `after`: keys of the last row that the caller has; read only for reports without a range.
std::string merged_report(const ReportShape& shape, const std::vector<std::vector<std::string>>& parts, int limit,
                          const std::vector<std::string>& after);

// Converts keys to an opaque cursor and back; nullopt: not a cursor of this report.
std::string report_cursor(const ReportShape& shape, const std::vector<std::string>& keys);
std::optional<std::vector<std::string>> keys_from_cursor(const ReportShape& shape, const std::string& cursor);

}  // namespace tocsin

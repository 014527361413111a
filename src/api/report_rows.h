// Merges the rows of a report from several databases into one report.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ports/report_store.h"

namespace tocsin {

// How a column's values in rows with the same keys, one per database, become one value.
enum class Merge {
  key,    // rows with the same keys are one row
  sum,    // numbers
  least,  // times as texts
  most,   // numbers or times
  first,  // any that is not null
  last,   // that of the row with the latest last_at
  all,    // true when all are
  p50,    // from the histograms
  p90,
  p99,
  share,  // of a target: computed from the sums
  budget,
  is_met,
};

struct ReportColumn {
  const char* name;
  Merge merge;
};

struct ReportShape {
  Report report;
  const char* name;  // in the path
  const char* summary;
  std::vector<ReportColumn> columns;  // in the order shown; keys in the order of the rows
  bool has_range = true;
  bool is_newest_first = true;
};

const std::vector<ReportShape>& report_shapes();    // of all that have a path
const ReportShape& report_shape_of(Report report);  // of any

// Returns an object with "items", "next_cursor", "columns" and "totals" (of the items) as JSON text without its closing
// brace. `parts`: the rows of each database. `after`: keys of the last row that the caller has, for reports that the
// databases return as a whole.
std::string merged_report(const ReportShape& shape, const std::vector<std::vector<std::string>>& parts, int limit,
                          const std::vector<std::string>& after);

// Converts keys to an opaque cursor and back; nullopt: not a cursor of this report.
std::string report_cursor(const ReportShape& shape, const std::vector<std::string>& keys);
std::optional<std::vector<std::string>> keys_from_cursor(const ReportShape& shape, const std::string& cursor);

}  // namespace tocsin

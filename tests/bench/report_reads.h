// The reads of reports that the bench measures: every view, every REST report and the overview, over usual ranges and
// over a year.
#pragma once

#include <string>
#include <vector>

namespace tocsin::bench {

struct ReportRead {
  std::string name;  // of the figure
  std::string text;  // a SQL statement, or the path of a REST request (is_rest)
  bool is_rest = false;
};

const std::vector<ReportRead>& usual_reads();
const std::vector<ReportRead>& reads_of_a_year();
// Reads of a year by the days of a time zone, before any totals of such days are stored.
const std::vector<ReportRead>& reads_without_kept_days();

}  // namespace tocsin::bench

// The reads of reports that are measured: every view, REST report and overview, over a usual range and a year.
#pragma once

#include <string>
#include <vector>

namespace tocsin::bench {

struct ReportRead {
  std::string name;  // of the figure
  std::string text;  // the statement, or the path
  bool is_rest = false;
};

const std::vector<ReportRead>& usual_reads();
const std::vector<ReportRead>& reads_of_a_year();
// Days of a time zone of a whole year before any of them has been kept.
const std::vector<ReportRead>& reads_without_kept_days();

}  // namespace tocsin::bench

// Rows of a lane, as a scan reads them, for the tests of what a lane's cursor is made of.
#pragma once

#include <initializer_list>
#include <vector>

#include "ports/job_store.h"

namespace tocsin {

inline std::vector<ScanReply::Row> rows_due(std::initializer_list<WallTime> times) {
  std::vector<ScanReply::Row> rows;
  for (const WallTime time : times) rows.push_back({{make_job_id(static_cast<JobId>(rows.size()) + 1, 0), 1, time}});
  return rows;
}

}  // namespace tocsin

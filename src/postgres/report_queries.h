// Statements that write and read the report tables.
#pragma once

#include <string>

#include "ports/report_store.h"

namespace tocsin::sql {

// $1: so many reasons of deaths per type and day. Answers with the number of deltas.
std::string fold_counts();
// $1 node_id, $2 seq, then arrays: kind, slot, type_id, n, missed, max_ms, buckets. Answers 0 when it was known.
// The stored percentiles may lie above max_ms by the width of a bucket; the views cut them.
std::string flush_histograms();

// Rows as JSON. $1 biz_type, $2 from, $3 to, $4 limit, $5 to $7 the keys of the last row seen; all but $4 may be NULL.
// `is_of_zone`: days of the time zone $8; without $2 the last 31 of them.
std::string report(Report report, bool is_of_zone);

}  // namespace tocsin::sql

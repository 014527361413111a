// Prometheus gauges of a node's databases and types: jobs by type, sizes of the engines' queues, state of each
// database, paused types and targets.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "metrics/metrics.h"
#include "node/database_map.h"

namespace tocsin {

// Called once, at the start: registers functions that read the values at each Metrics::text(), on its caller's thread.
// REQUIRES: both outlive the last Metrics::text().
void add_gauges_of(const Databases& databases, Metrics& metrics);

// The next three name at most TypeLabels::kMost types.

// The states of all databases added up by type; the oldest due job is that of the database where it waits longest.
std::map<std::string, TypeState> states_by_type(const std::vector<std::vector<TypeState>>& databases);
// 1 for each paused type; of "other" how many. Types that are not paused have no value.
std::vector<LabelledValue> paused_types(const TypeCatalog& catalog, WallTime now);
// The share of each type that has a target. Further types are left out: shares do not add up.
std::vector<LabelledValue> target_shares(const TypeCatalog& catalog);

}  // namespace tocsin

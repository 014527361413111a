// Prometheus gauges of a node's databases and types: jobs by type, sizes of the engines' queues, state of each
// database; and the values of two gauges of types, which node_parts.cc registers. Thread: any.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "metrics/metrics.h"
#include "node/database_map.h"

namespace tocsin {

// Registers functions that read the values at each Metrics::text(), on the thread of its caller. Called once, when the
// node starts. REQUIRES: `databases` and `metrics` outlive the last Metrics::text().
void add_gauges_of(const Databases& databases, Metrics& metrics);

// The next three name at most TypeLabels::kMost types.

// By type name: the numbers of jobs, added up over all databases, and the longest wait of a due job in any database.
// Types beyond the bound are added up as "other". `databases`: for each database the states of its types.
std::map<std::string, TypeState> states_by_type(const std::vector<std::vector<TypeState>>& databases);
// The value 1 for each paused type, no value for any other type. "other": the number of paused types beyond the bound.
std::vector<LabelledValue> paused_types(const TypeCatalog& catalog, WallTime now);
// For each type with a target: the share of jobs that must start in time, 0..1. Types beyond the bound are left out,
// because shares do not add up.
std::vector<LabelledValue> target_shares(const TypeCatalog& catalog);

}  // namespace tocsin

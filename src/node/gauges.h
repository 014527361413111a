// Prometheus gauges of a node's databases: jobs by type, sizes of the engines' queues, state of each database.
#pragma once

#include "metrics/metrics.h"
#include "node/node_backend.h"

namespace tocsin {

// Called once, at the start: registers functions that read the values at each Metrics::text(), on its caller's thread.
// REQUIRES: both outlive the last Metrics::text().
void add_gauges_of(const Databases& databases, Metrics& metrics);

}  // namespace tocsin

// Prometheus gauges: sizes of the engines' queues, and the state of each database.
#pragma once

#include "metrics/metrics.h"
#include "node/node_backend.h"

namespace tocsin {

// REQUIRES: both outlive the last Metrics::text().
void add_gauges_of(const Databases& databases, Metrics& metrics);

}  // namespace tocsin

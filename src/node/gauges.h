// Prometheus gauges: sizes of the engines' queues, and the state of each database.
#pragma once

#include "metrics/metrics.h"
#include "node/node_backend.h"

namespace tocsin {

// Both must outlive the last exposition.
void add_gauges_of(const Databases& databases, Metrics& metrics);

}  // namespace tocsin

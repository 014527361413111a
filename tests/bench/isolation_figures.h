// What the measurements of isolation report: many types, slow endpoints, overload, drifting clocks, several nodes.
#pragma once

#include "bench/figures.h"

namespace tocsin::bench {

Section isolation_section();
Section cluster_section();
Section types_section();
Section many_lanes_section();
Section overload_section();
Section pull_backlog_section();
Section registry_section();
Section drift_section();

}  // namespace tocsin::bench

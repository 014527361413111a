// The figures of the measurements of isolation: whether a type or a node slows down others (many types, slow endpoints,
// overload, clocks that drift, several nodes).
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

// The figures of the measurements about reports.
#pragma once

#include "bench/figures.h"

namespace tocsin::bench {

Section reports_section();
Section counting_section();

}  // namespace tocsin::bench

// Writes lengths of time for sentences: "12.5 s".
#pragma once

#include <string>

#include "tocsin/clock.h"

namespace tocsin {

// Without the sign, in two units at most, rounded down: "350 ms", "12.5 s", "15 min 0 s", "3 h 20 min", "4 d 2 h".
std::string duration_text(Duration length);

}  // namespace tocsin

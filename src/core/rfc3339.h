// How times are written for callers: "2026-03-01T12:00:00.250000Z".
#pragma once

#include <string>

#include "tocsin/clock.h"

namespace tocsin {

// In UTC, with microseconds. REQUIRES: a year from 0 to 9999.
std::string rfc3339(WallTime time);
void append_rfc3339(std::string& out, WallTime time);

}  // namespace tocsin

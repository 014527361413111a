// Writes times for callers as RFC 3339: "2026-03-01T12:00:00.250000Z".
#pragma once

#include <string>

#include "tocsin/clock.h"

namespace tocsin {

// In UTC, with microseconds. Times outside of the years 0 to 9999, infinity included, are written as the nearest
// inside.
std::string rfc3339(WallTime time);
void append_rfc3339(std::string& out, WallTime time);

}  // namespace tocsin

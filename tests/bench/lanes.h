// The same work on several connections at once, as a node does it.
#pragma once

#include <cstddef>
#include <functional>

namespace tocsin::bench {

using Work = std::function<void(std::size_t chunk)>;

// Calls work(0) .. work(chunks - 1), spread over `lanes` threads, each with a `Work` of its own: its connection is open
// before the clock starts. Seconds from the start until the last is done. Throws what a lane threw.
double run_lanes(int lanes, std::size_t chunks, const std::function<Work()>& make_work);

// The same for as long as a duration. Returns the number of calls per second.
double rate_of_lanes(int lanes, double seconds, const std::function<Work()>& make_work);

}  // namespace tocsin::bench

// Runs the same work on several threads at once, each with a connection of its own, as a node does. (A lane of this
// file is such a thread; elsewhere a lane is the jobs of one type in one shard.)
#pragma once

#include <cstddef>
#include <functional>

namespace tocsin::bench {

using Work = std::function<void(std::size_t chunk)>;

// Calls work(0) to work(chunks - 1), spread over `lanes` threads. `make_work`: makes the Work of one thread, with its
// connection; called before the clock starts. Returns the seconds until the last call has returned. Throws what a
// thread threw.
double run_lanes(int lanes, std::size_t chunks, const std::function<Work()>& make_work);

// The same for `seconds`. Returns the number of calls per second.
double rate_of_lanes(int lanes, double seconds, const std::function<Work()>& make_work);

}  // namespace tocsin::bench

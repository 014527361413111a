// Sleeps between two requests to a server, for commands that wait or repeat.
#pragma once

#include <poll.h>

#include <algorithm>
#include <chrono>

namespace tocsin {

// Blocks the calling thread for this time, 60 s at most; a signal may end it early.
inline void pause_for(std::chrono::milliseconds length) {
  ::poll(nullptr, 0, static_cast<int>(std::clamp<std::int64_t>(length.count(), 0, 60'000)));
}

}  // namespace tocsin

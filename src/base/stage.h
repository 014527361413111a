// Stage: a part of the node that does a bounded piece of work per call and returns when to call it again.
#pragma once

#include "tocsin/clock.h"

namespace tocsin {

// Returned by step(): call again only when woken.
inline constexpr MonoTime kWhenWoken = MonoTime::max();

// In the pipeline and the cluster step() makes at most one store call, never waits and reads no clock: loops and waits
// are in base/loop_thread (threads) and in the simulator (fibers), so the same stages run under a virtual clock. A
// stage that is not simulated may do more, and says so. Thread: owner only.
class Stage {
 public:
  virtual ~Stage() = default;
  virtual const char* name() const = 0;
  // Returns when to call again: `now` or earlier means at once. A wake-up brings it sooner.
  virtual MonoTime step(MonoTime now) = 0;
};

}  // namespace tocsin

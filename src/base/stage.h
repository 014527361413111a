// Stage: a part of the node that does a bounded piece of work per call and returns when to call it again. LoopThread
// calls it on a thread, the simulator in a fiber under a virtual clock.
#pragma once

#include "tocsin/clock.h"

namespace tocsin {

// Returned by step(): call again only when woken.
inline constexpr MonoTime kWhenWoken = MonoTime::max();

// A stage that is simulated (those of the pipeline and the cluster, and PermitRenewer) makes at most one store call per
// step, waits for nothing else and reads no clock: its time is `now` and what the store replies. A stage that is not
// simulated may do more, and says so. Thread: owner only.
class Stage {
 public:
  virtual ~Stage() = default;
  virtual const char* name() const = 0;  // in metrics and the log; a string literal
  // Returns when to call again: `now` or earlier means at once. A wake-up (base/waker.h) makes it sooner. A failure is
  // reported to the stage's EventSink, and the time returned is that of the next attempt. Must not throw.
  virtual MonoTime step(MonoTime now) = 0;
};

}  // namespace tocsin

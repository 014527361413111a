// Stage: a part of the node that does a bounded piece of work per call and returns when to call it again. LoopThread
// calls it on a thread, the simulator in a fiber under a virtual clock.
#pragma once

#include "tocsin/clock.h"

namespace tocsin {

// Returned by step(): call again only when woken.
inline constexpr MonoTime kWhenWoken = MonoTime::max();

// The simulator runs the stages of the pipeline and the cluster, and PermitRenewer. Such a stage makes at most one
// store call per step, waits for nothing else and reads no clock: its time is `now` and what the store replies. Other
// stages may do more, and say so. Thread: owner only (the loop that calls step()).
class Stage {
 public:
  virtual ~Stage() = default;
  virtual const char* name() const = 0;  // in metrics and the log; a string literal
  // Does a bounded piece of work. Returns when to call again; `now` or earlier means at once. A wake-up (base/waker.h)
  // makes the next call earlier. After a failure the stage reports it to its EventSink and returns when to try again.
  // Must not throw.
  virtual MonoTime step(MonoTime now) = 0;
};

}  // namespace tocsin

// Wakes a loop that waits, because it has work. Implemented by WorkerThread and LoopThread (base), and by the fibers of
// the simulator.
#pragma once

namespace tocsin {

// Thread: any.
class Waker {
 public:
  virtual ~Waker() = default;
  virtual void wake() = 0;
};

}  // namespace tocsin

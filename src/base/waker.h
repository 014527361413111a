// Waker: wakes the loop that serves a stage or queue, because there is work. Called by whatever adds the work;
// implemented by WorkerThread and LoopThread (base), and by the fibers of the simulator.
#pragma once

namespace tocsin {

// Thread: any.
class Waker {
 public:
  virtual ~Waker() = default;
  virtual void wake() = 0;  // does not block; kept for the next wait if the loop works now; several count as one
};

}  // namespace tocsin

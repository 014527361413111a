// Wakes a loop that waits, because it has work. Implemented by threads (node) and by fibers (simulator).
#pragma once

namespace tocsin {

// Thread: any.
class Waker {
 public:
  virtual ~Waker() = default;
  virtual void wake() = 0;
};

}  // namespace tocsin

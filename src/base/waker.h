// Tells a loop that there is work for it.
#pragma once

namespace tocsin {

// Thread: any.
class Waker {
 public:
  virtual ~Waker() = default;
  virtual void wake() = 0;
};

}  // namespace tocsin

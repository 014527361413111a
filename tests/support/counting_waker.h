// CountingWaker: a Waker that counts its wake-ups. Thread: that of the test.
#pragma once

#include "base/waker.h"

namespace tocsin {

class CountingWaker final : public Waker {
 public:
  void wake() override { ++wakes; }
  int wakes = 0;
};

}  // namespace tocsin

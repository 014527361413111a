// NoFaults: every call of a database in memory happens at once; also the base of tests' own. Thread: the sessions'.
#pragma once

#include "support/fake_sessions.h"

namespace tocsin {

class NoFaults : public FaultPoint {
 public:
  Effect before(const FakeCall&) override { return Effect::happens; }
  void working(const FakeCall&) override {}
  bool after(const FakeCall&) override { return true; }
  void keep(std::function<void()>) override {}
};

}  // namespace tocsin

// Timekeeper: the stage that holds candidates (unclaimed jobs due soon) on the time wheel until they are due by
// DbClock, then pushes them to the DueQueue. A job leaves memory, and a scan finds its row, if the wheel or the queue
// (bounded by EngineConfig::capacity) is full, or if it is due later than the wheel reaches: a second beyond the
// lookahead.
//
// Thread: owner only, except the inputs it shares (EngineShared).
#pragma once

#include <optional>
#include <vector>

#include "base/stage.h"
#include "core/time_wheel.h"
#include "pipeline/engine_shared.h"

namespace tocsin {

class Timekeeper final : public Stage {
 public:
  explicit Timekeeper(EngineShared& shared) : shared_(shared) {}

  const char* name() const override { return "timekeeper"; }
  MonoTime step(MonoTime now) override;

 private:
  static constexpr std::size_t kIntake = 8192;  // candidates per step: bounds how long due jobs wait behind new ones

  EngineShared& shared_;
  std::optional<TimeWheel> wheel_;  // empty until the database's time is known
  std::vector<Candidate> due_;
  std::vector<Candidate> dropped_;
};

}  // namespace tocsin

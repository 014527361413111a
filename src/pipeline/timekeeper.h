// Timekeeper: the stage that holds candidates (unclaimed jobs due soon) on the time wheel until they are due by
// DbClock. Then it pushes them to the DueQueue. Engine owns one.
//
// A job leaves memory, and a scan finds its row again, if the wheel or the queue is full (EngineConfig::capacity), or
// if the job is due later than the wheel reaches: a second beyond the lookahead.
//
// Thread: owner only (the timekeeper's loop thread); the objects in EngineShared are safe for any thread.
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
  static constexpr std::size_t kIntake = 8192;  // the most candidates per step, so that due jobs do not wait long

  EngineShared& shared_;
  std::optional<TimeWheel> wheel_;  // empty until the database's time is known
  std::vector<Candidate> due_;
  std::vector<Candidate> dropped_;
};

}  // namespace tocsin

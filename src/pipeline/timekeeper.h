// Timekeeper: the stage that holds candidates (pending jobs due soon) on the time wheel until they are due, then pushes
// them to the DueQueue. A job for which the wheel or the queue has no capacity leaves memory; a scan finds its row.
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

  // The number of candidates on the wheel.
  std::size_t on_wheel() const { return wheel_ ? wheel_->size() : 0; }

 private:
  static constexpr std::size_t kIntake = 8192;  // candidates per step: bounds how long due jobs wait behind new ones

  EngineShared& shared_;
  std::optional<TimeWheel> wheel_;  // from the first known time on
  std::vector<Candidate> due_;
  std::vector<Candidate> dropped_;
};

}  // namespace tocsin

// PollTimeoutSweeper: the stage that answers waiting consumers (PollQueue) with no jobs when their deadline has passed,
// and forgets those whose connection is closed. Each engine has one; all of a node work on the same queue.
//
// Thread: owner only, except the inputs it shares (EngineShared).
#pragma once

#include "base/stage.h"
#include "pipeline/engine_shared.h"

namespace tocsin {

class PollTimeoutSweeper final : public Stage {
 public:
  explicit PollTimeoutSweeper(EngineShared& shared) : shared_(shared) {}

  const char* name() const override { return "poll_timeout_sweeper"; }
  MonoTime step(MonoTime now) override { return shared_.polls->expire(now); }

 private:
  EngineShared& shared_;
};

}  // namespace tocsin

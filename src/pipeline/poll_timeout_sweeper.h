// PollTimeoutSweeper: the stage that answers waiting consumers with no jobs when their deadline has passed, and forgets
// consumers whose connection is closed. They wait in the PollQueue, which all engines of the node share. Engine owns
// one sweeper; all of them serve the same queue, and the queue wakes only one of them.
//
// Thread: owner only (the stage's loop thread).
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

// Runner: the stage that starts the handler of each claimed job and passes its outcome to the finisher. If the lease or
// the start window is over, if this node has no handler of the type, or if the node drains, no attempt starts: the job
// is released and the attempt not counted.
//
// Thread: owner only, except the inputs it shares (EngineShared). Handlers report outcomes on threads of their own.
#pragma once

#include "base/stage.h"
#include "pipeline/engine_shared.h"

namespace tocsin {

class Runner final : public Stage {
 public:
  Runner(EngineShared& shared, HandlerFinder find_handler) : shared_(shared), find_handler_(std::move(find_handler)) {}

  const char* name() const override { return "runner"; }
  MonoTime step(MonoTime now) override;

 private:
  static constexpr std::size_t kBatch = 256;

  void start(MonoTime now, std::shared_ptr<const ClaimedJob> claimed);

  EngineShared& shared_;
  HandlerFinder find_handler_;
};

}  // namespace tocsin

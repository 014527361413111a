// Runner: the stage that starts the handler of every claimed job, and passes outcomes to the finisher.
//
// Thread: owner only, except the inputs it shares (EngineShared). Handlers finish on threads of their own.
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

// Runner: the stage that starts the handler of each claimed job and passes its outcome to the finisher. Engine owns
// one. No attempt starts if
//  - the lease or the start window (ClaimedJob::start_by) is over,
//  - this node has no handler of the type, or
//  - the node drains.
// Then the finisher releases the claim, and the attempt does not count. Without a handler the job is due again after
// 5 s; otherwise it is due at once. A handler that cannot start the attempt at once may start it in the first half of
// what is left of the lease, so that the attempt has the other half to run.
//
// Thread: owner only (the runner's loop thread). Starting a handler does not block. A handler reports its outcome on
// any thread; if the attempt has ended, that frees its slot in the start pool.
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
  static constexpr std::size_t kBatch = 256;  // jobs per step

  void start(MonoTime now, std::shared_ptr<const ClaimedJob> claimed);

  EngineShared& shared_;
  HandlerFinder find_handler_;
};

}  // namespace tocsin

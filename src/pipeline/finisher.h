// Writes outcomes: done, dead, pending again. Keeps what it could not write and tries again: after the claim memory is
// a promise.
//
// Thread: owner only, except the inputs it shares (EngineShared).
#pragma once

#include <vector>

#include "base/random.h"
#include "base/stage.h"
#include "pipeline/engine_shared.h"

namespace tocsin {

class Finisher final : public Stage {
 public:
  Finisher(EngineShared& shared, JobStore& store, std::uint64_t seed) : shared_(shared), store_(store), random_(seed) {}

  const char* name() const override { return "finisher"; }
  MonoTime step(MonoTime now) override;

 private:
  // Of which type a request is, and at which pace its attempt was claimed.
  struct Origin {
    TypeId type = 0;
    Pace pace = Pace::fresh;
  };

  FinishRequest request_for(MonoTime now, const FinishedRun& run);
  void tell_end(MonoTime now, const FinishedRun& run, FinishRequest::Kind kind);
  Duration give_back_delay(MonoTime now, const FinishedRun& run) const;
  void settle(const FinishRequest& request, const Origin& origin, FinishReply reply);
  void hint_retries(MonoTime now);

  EngineShared& shared_;
  JobStore& store_;
  Random random_;
  std::vector<FinishRequest> requests_;  // not written yet
  std::vector<Origin> origins_;          // of requests_, one by one
  struct Retry {
    JobId job_id;
    TypeId type_id;
    Duration delay;
  };
  std::vector<Retry> retries_;  // written a moment ago, due again soon, or by their former time
};

}  // namespace tocsin

// Finisher: the stage that writes outcomes (done, dead, pending again) in batches, guarded by the claim token. It keeps
// outcomes that it could not write and tries again. A batch that is refused for the values of one row is split until
// that row is alone; it is tried again apart from the others, until its lease is over and the job due again. A database
// that does not answer is asked again on a fresh session within a part of the shortest lease.
//
// Thread: owner only, except the inputs it shares (EngineShared).
#pragma once

#include <cstdint>
#include <deque>
#include <span>
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
  static constexpr std::size_t kUnlimited = SIZE_MAX / 2;
  static constexpr Duration kApartPause = std::chrono::milliseconds(500);

  // What a request's attempt was: its type, the pace at which it was claimed, and how long its lease is trusted.
  struct Origin {
    TypeId type = 0;
    Pace pace = Pace::fresh;
    MonoTime lease_deadline{};
    bool is_slot_free = false;           // FinishedRun
    std::optional<WallTime> due_before;  // when the row was due before the claim
  };

  void take_outcomes(MonoTime now);
  Result<std::vector<FinishReply>> write(MonoTime now, std::span<const FinishRequest> requests);
  MonoTime refused(MonoTime now, std::size_t n, const Error& error);
  MonoTime write_apart(MonoTime now);
  FinishRequest request_for(MonoTime now, const FinishedRun& run);
  void tell_end(MonoTime now, const FinishedRun& run, FinishRequest::Kind kind);
  Duration release_delay(MonoTime now, const FinishedRun& run) const;
  void settle(const FinishRequest& request, const Origin& origin, FinishReply reply);
  void hint_retries(MonoTime now);

  EngineShared& shared_;
  JobStore& store_;
  Random random_;
  std::vector<FinishRequest> requests_;  // not written yet
  std::vector<Origin> origins_;          // of requests_, one by one
  int unanswered_ = 0;                   // calls in a row
  std::size_t most_ = kUnlimited;        // requests in one call: fewer while the refused row is searched
  struct Apart {
    FinishRequest request;
    Origin origin;
    MonoTime again;
  };
  std::deque<Apart> apart_;  // refused by themselves, the next one first
  struct Retry {
    JobId job_id;
    TypeId type_id;
    Duration delay;
    std::optional<WallTime> due_before;
  };
  std::vector<Retry> retries_;  // just written, due again soon: to be hinted
};

}  // namespace tocsin

// Finisher: the stage that writes outcomes (done, dead, pending again) in batches, guarded by the claim token. It keeps
// outcomes that it could not write and tries again. A batch that fails because of one row is split until that row is
// alone; that outcome is set aside and tried again by itself. If the database refuses its values (Error invalid), it is
// dropped when its lease is over: the job is due again then. A call waits for the answer for a part of the shortest
// lease (EngineShared::outcome_patience), twice as long after each call without an answer.
//
// Thread: owner only, except the inputs it shares (EngineShared).
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "base/random.h"
#include "base/stage.h"
#include "pipeline/answer_limit.h"
#include "pipeline/engine_shared.h"

namespace tocsin {

class Finisher final : public Stage {
 public:
  Finisher(EngineShared& shared, JobStore& store, std::uint64_t seed)
      : shared_(shared), store_(store), answers_(store), random_(seed) {}

  const char* name() const override { return "finisher"; }
  MonoTime step(MonoTime now) override;

 private:
  static constexpr std::size_t kUnlimited = SIZE_MAX / 2;
  static constexpr Duration kApartPause = std::chrono::milliseconds(500);

  // Of a request: what the attempt took and must return.
  struct Origin {
    TypeId type = 0;
    Pace pace = Pace::fresh;
    MonoTime lease_deadline{};
    bool is_slot_free = false;           // as FinishedRun's
    std::optional<WallTime> due_before;  // when the row was due before the claim
  };

  void take_outcomes(MonoTime now);
  Result<std::vector<FinishReply>> write(MonoTime now, std::span<const FinishRequest> requests);
  MonoTime refused(MonoTime now, std::size_t n, const Error& error);
  MonoTime write_apart(MonoTime now);  // the next of apart_
  FinishRequest request_for(MonoTime now, const FinishedRun& run);
  void tell_end(MonoTime now, const FinishedRun& run, FinishRequest::Kind kind);  // to the event sink
  Duration release_delay(MonoTime now, const FinishedRun& run) const;
  // The request is over: returns slots and permits, and counts it.
  void settle(const FinishRequest& request, const Origin& origin, FinishReply reply);
  void hint_retries(MonoTime now);

  EngineShared& shared_;
  JobStore& store_;
  AnswerLimit answers_;
  Random random_;
  std::vector<FinishRequest> requests_;  // not written yet
  std::vector<Origin> origins_;          // of requests_, one by one
  std::size_t most_ = kUnlimited;        // requests in one call: fewer while the failing row is searched
  struct Apart {
    FinishRequest request;
    Origin origin;
    MonoTime again;
  };
  std::deque<Apart> apart_;  // set aside, the next one first
  struct Retry {
    JobId job_id;
    TypeId type_id;
    Duration delay;
    std::optional<WallTime> due_before;
  };
  std::vector<Retry> retries_;  // just written, due again soon: to be hinted
};

}  // namespace tocsin

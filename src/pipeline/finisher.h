// Finisher: the stage that writes the outcomes of attempts to the database, in batches. Engine owns one. The runner and
// the handlers put outcomes into the queue EngineShared::outcomes. The finisher makes each job done, dead or pending
// again if the row still has the attempt's claim token. Then it returns the slots and permits that the attempt held.
//
// - Outcomes that could not be written, because the call failed or their row was locked, are kept and written again. If
//   the process ends before, they are lost: the jobs are due again when their leases end.
// - A batch that fails because of one row is halved until that row is alone. Its outcome is set aside and tried by
//   itself, every 500 ms; these tries and the other outcomes take turns. If the database refuses its values (Error
//   invalid), it is dropped once its lease has ended: the job is due again then.
// - A store call may take EngineShared::outcome_patience(): a third of the shortest lease, at least 1 s. After a call
//   without an answer the next call may take twice as long (AnswerLimit).
//
// Thread: owner only (the finisher's loop); the objects in EngineShared are safe for any thread.
#pragma once

#include <deque>
#include <span>
#include <vector>

#include "base/part_size.h"
#include "base/random.h"
#include "base/stage.h"
#include "pipeline/answer_limit.h"
#include "pipeline/engine_shared.h"

namespace tocsin {

class Finisher final : public Stage {
 public:
  // `store`: used by this stage only. `seed`: of the random part of back-offs.
  Finisher(EngineShared& shared, JobStore& store, std::uint64_t seed)
      : shared_(shared), store_(store), answers_(store), random_(seed) {}

  const char* name() const override { return "finisher"; }
  MonoTime step(MonoTime now) override;

 private:
  static constexpr Duration kSetAsidePause = std::chrono::milliseconds(500);

  // What settle() needs of the attempt whose outcome a request writes.
  struct Origin {
    TypeId type = 0;
    Pace pace = Pace::fresh;
    MonoTime lease_deadline{};
    bool is_slot_free = false;           // its slot in the start pool was returned when the attempt ended
    std::optional<WallTime> due_before;  // when the row was due before the claim; empty: not known
  };

  // Moves outcomes from the queue to requests_. Outcomes that need no write are settled at once.
  void take_outcomes(MonoTime now);
  // Makes one store call. Returns a reply per request, in order.
  Result<std::vector<FinishReply>> write(MonoTime now, std::span<const FinishRequest> requests);
  // The database has answered a call that sent the first `n` of requests_. The wait of the outcomes is over
  // (EngineShared::answers) when all that were kept at the last note_waiting() have been sent.
  void note_answer(std::size_t n);
  // A call has brought no answer, or has shown that a batch must be split: all outcomes that are kept now wait.
  void note_waiting(MonoTime now);
  // After a failed write of the first `n` requests: halves the batch, or sets the failing request aside. Returns when
  // to step again, as write_set_aside() does.
  MonoTime handle_failure(MonoTime now, std::size_t n, const Error& error);
  MonoTime write_set_aside(MonoTime now);  // the first of set_aside_
  FinishRequest request_for(MonoTime now, const FinishedAttempt& run);
  // Reports to the event sink how an attempt ended and how long it took.
  void report_end(MonoTime now, const FinishedAttempt& run, FinishRequest::Kind kind);
  // The delay of a request that releases a claim. Negative: the job is due at its earlier time again.
  Duration release_delay(MonoTime now, const FinishedAttempt& run) const;
  // Ends a request: returns slots and permits, counts it, and adds a job that is due again soon to retries_.
  void settle(const FinishRequest& request, const Origin& origin, FinishReply reply);
  // Hints the jobs in retries_ to this node's engine, or to the owner of their shard, so that they wait for no scan.
  void hint_retries(MonoTime now);
  void note_reported_releases();  // after hint_retries(): to EngineShared::unreported

  EngineShared& shared_;
  JobStore& store_;
  AnswerLimit answers_;
  Random random_;
  std::vector<FinishRequest> requests_;  // not written yet
  std::vector<Origin> origins_;          // origins_[i] belongs to requests_[i]
  std::size_t behind_ = 0;               // how many of them waited at the last note_waiting(), and were not sent since
  PartSize part_size_;                   // of the requests in one call
  struct SetAside {
    FinishRequest request;
    Origin origin;
    MonoTime try_at;
  };
  std::deque<SetAside> set_aside_;    // by try_at
  bool has_tried_set_aside_ = false;  // the last call was a try of one of them
  struct Retry {
    JobId job_id;
    TypeId type_id;
    Duration delay;                      // as the request's
    std::optional<WallTime> due_before;  // as the Origin's
  };
  std::vector<Retry> retries_;  // just written as pending, due within the lookahead: the next step hints them
};

}  // namespace tocsin

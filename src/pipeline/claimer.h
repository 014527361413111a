// Claimer: the stage that claims due jobs. It takes the next batch from JobAdmission, claims it with one store call and
// puts the jobs won into the queue of the runner (EngineShared::claimed). A claim is a compare-and-set, so exactly one
// node wins a job. Jobs not won leave memory, except jobs that may have been claimed a moment too early: they return to
// the time wheel.
//
//  - Jobs of instant types (handler `noop`) are fired: claimed and finished in that one call.
//  - Jobs of pull types go to the consumers whose polls (waiting requests) are part of the batch. If the jobs come from
//    a backlog (overdue rows that are not in memory, claimed from the table), each call claims from one lane (the jobs
//    of one type in one shard). Further lanes follow until the consumers have what they asked for.
//  - A claim whose answer is lost is in doubt: it may have happened. The next steps ask the store which jobs it won. A
//    claim without an answer within EngineShared::claim_patience() is in doubt, too; its session is closed.
//  - A batch of jobs to fire that the store refuses is fired in parts, until a part is the refused row alone. That row
//    is dropped from memory; in a backlog the claimer continues behind the row.
//  - A claim leaves out rows that the store refuses; they leave memory, too. Jobs that it did not try return to the
//    queue. In a backlog the claimer continues behind the row.
//  - After any other error the batch leaves memory, and a scan finds its rows. The next step comes after
//    EngineConfig::retry_pause, or at once if jobs won before must still be given to consumers.
//
// Engine owns one or more claimers, each with a store of its own.
// Thread: owner only (the loop thread of this claimer); the objects in EngineShared are safe for any thread.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/part_size.h"
#include "base/random.h"
#include "base/stage.h"
#include "pipeline/answer_limit.h"
#include "pipeline/engine_shared.h"

namespace tocsin {

class Claimer final : public Stage {
 public:
  // `seed`: of the generator that makes the claim seeds, and so the claim tokens; REQUIRES: it differs between
  // claimers, nodes and process starts. `role`: which types it serves, see ClaimerRole (admission/admission.h).
  Claimer(EngineShared& shared, JobStore& store, std::uint64_t seed, ClaimerRole role = ClaimerRole::primary)
      : shared_(shared), store_(store), answers_(store), random_(seed), role_(role) {}

  const char* name() const override { return "claimer"; }
  MonoTime step(MonoTime now) override;

 private:
  // A claim that was sent, that is in doubt, or that is prepared for the next lane.
  struct ClaimCall {
    DueBatch batch;
    ClaimTicket ticket;
    MonoTime at{};                               // when the first claim was sent; leases are counted from it
    bool is_slow = false;                        // is_slow_ when it was sent
    std::shared_ptr<const TypeCatalog> catalog;  // the types, and so the lease lengths, that the claim used
    std::map<TypeId, std::size_t> slots;         // taken from the concurrency limiter, by type
    // Pull types, backlog: jobs won from earlier lanes for the same consumers.
    std::vector<ClaimedJob> gathered;
    bool is_cut_short = false;  // see Claims
  };

  // Jobs won for consumers; the next step gives them out.
  struct Won {
    DueBatch batch;
    std::vector<ClaimedJob> jobs;
  };

  // Jobs that are fired in parts, because the store refused a batch, and a row that is passed.
  struct Parts {
    PartSize size;
    std::optional<Lane> lane;        // the lane of the last backlog that was fired
    std::optional<DueBatch> rest;    // the jobs of the batch that the next step fires
    std::optional<Backlog> refused;  // a backlog whose first row the store neither fires nor claims
    std::size_t n_refused = 0;       // such rows since a row was fired or claimed
    MonoTime pause_until{};          // before that `refused` is not passed
  };

  // A result of type MonoTime says when step() is to be called again.
  MonoTime fire(MonoTime now, DueBatch batch);
  void hold_back(DueBatch& batch);  // keeps the first parts_.size jobs; moves the others to parts_.rest
  MonoTime fire_in_parts(MonoTime now, DueBatch batch);
  MonoTime fire_rest(MonoTime now, const AdmissionTime& time);
  // The store refuses the first row of the backlog. The next step passes the row.
  void note_refused(MonoTime now, const Backlog& backlog);
  // Counts rows that the store refused. True: they are so many, without one fired or claimed between, that the claimer
  // pauses.
  bool is_pause_due(std::size_t refused);
  MonoTime pass_refused(MonoTime now);  // continues the backlog behind its first row
  // Returns the rate tokens of jobs that were not fired.
  void return_unused_rate(const DueBatch& batch, const std::vector<Fired>& fired);
  // Sets is_slow_ from the duration of the previous claim, including the time in which it was in doubt. Does nothing if
  // that claim failed.
  void note_duration(MonoTime now);
  // Notes that the database's clock showed `shown` during the call that was sent at `asked`. The next step adds that to
  // the clock estimate (DbClock).
  void note_clock(MonoTime asked, WallTime shown) { shown_ = {asked, std::max(shown, shown_.second)}; }
  MonoTime claim(MonoTime now, WallTime db_now, DueBatch batch);
  // Whether the claim waits until it is on disk (ClaimTicket::is_durable): always for pull types, after a slow claim,
  // and, unless EngineConfig::async_claims is set, for types whose attempts start outside the database.
  bool must_be_durable(const DueBatch& batch, const TypeCatalog& catalog) const;
  MonoTime send(MonoTime now, ClaimCall sent);
  // Takes the jobs that were not tried out of the batch, and says which are refused and so not claimed again.
  void take_out(DueBatch& batch, const Claims& claims);
  MonoTime resolve(MonoTime now);  // asks what a claim in doubt has won
  // Processes the answer of a claim. `asked`: when the answered statement was sent, the claim or resolve()'s question.
  void accept(ClaimCall sent, MonoTime asked, std::vector<ClaimedJob> won);
  // Moves `won` to sent.gathered. If the consumers want more jobs, prepares the claim of another backlog lane and
  // returns true. False: the consumers have all jobs that they asked for, no other lane can be claimed for them now, or
  // they have waited for 50 ms.
  bool gather(ClaimCall& sent, MonoTime asked, std::vector<ClaimedJob>& won);
  // Gives jobs won to the consumers of the batch. Releases jobs that no consumer takes or whose lease may be over.
  void deliver_to_polls(MonoTime now, const DueBatch& batch, std::vector<ClaimedJob> won);
  // Answers one poll; its consumer holds the leases from now on.
  void answer_poll(const Poll& poll, std::vector<ClaimedJob> jobs);
  void add_lease(ClaimedJob& claimed, Duration ttr) const;
  void requeue_polls(const std::vector<PollShare>& shares);  // polls that got nothing return to the head of the queue
  void release_claim(ClaimedJob claimed);                    // has the finisher undo the claim: no attempt counts
  // Counts the jobs won. A lane that gave fewer jobs than asked for leaves the backlog; one that gave all is queued to
  // be claimed again.
  void after_batch(MonoTime asked, const DueBatch& batch, std::vector<JobId> won, bool is_cut_short);
  // Removes the batch from KnownJobs; jobs not won that may have been claimed too early return to the wheel instead.
  void forget_or_retry(MonoTime asked, const DueBatch& batch, std::vector<JobId> won);
  // Drops from memory a batch whose claim failed, or whose fire() failed or is in doubt: a scan finds the rows that are
  // still pending.
  void abandon_batch(const DueBatch& batch);
  // Ends the backlog in DueQueue. If its jobs are fresh (Pace), the scanner reads the lane at once.
  void end_backlog(const Backlog& backlog);
  template <class Call>
  auto ask(Call&& call) {
    return answers_.call(shared_.claim_patience(), std::forward<Call>(call));
  }

  EngineShared& shared_;
  JobStore& store_;
  AnswerLimit answers_;
  Random random_;
  const ClaimerRole role_;
  std::optional<ClaimCall> unresolved_;  // in doubt
  std::optional<ClaimCall> gathering_;   // prepared by gather(), sent by the next step
  Parts parts_;
  std::optional<Won> won_;  // the next step gives them out
  std::optional<MonoTime>
      claimed_at_;  // when the previous claim was sent; empty: it failed, or note_duration() has used it
  std::pair<MonoTime, WallTime> shown_{};  // of note_clock(): when the call was sent, the latest time that it showed
  // The previous claim took longer than half of EngineConfig::start_window (how long after a claim that did not wait
  // for the disk a job may start). Then the next claim waits for the disk, so that a crash of the database cannot undo
  // it, and its jobs have no start window: the runner lets them start in the first half of what is left of their
  // leases. Jobs of a type with drop_older_than may start only until 1 s after they have exceeded that age.
  bool is_slow_ = false;
};

}  // namespace tocsin

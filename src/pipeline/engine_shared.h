// EngineShared: what the stages of one engine (the stages that fire the jobs of one database) share. It holds the
// settings, the queues between the stages, and thread-safe objects about the state of the node and the database. It
// decides nothing itself. Engine owns it; every stage has a reference. Thread: any.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "admission/admission.h"
#include "admission/concurrency_limiter.h"
#include "admission/flow_control.h"
#include "admission/poll_queue.h"
#include "base/bounded_queue.h"
#include "base/latest.h"
#include "pipeline/claims_in_doubt.h"
#include "pipeline/db_clock.h"
#include "pipeline/engine_config.h"
#include "pipeline/gained_shards.h"
#include "pipeline/known_jobs.h"
#include "pipeline/membership_state.h"
#include "pipeline/scan_progress.h"
#include "pipeline/unanswered_since.h"
#include "pipeline/unreported_releases.h"
#include "ports/event.h"
#include "tocsin/handler.h"

namespace tocsin {

// A lane (the jobs of one type in one shard) with rows that are too late to run: due before `before`.
struct TooLateLane {
  Lane lane;
  WallTime before{};
};

// A row whose claim was released: pending again at its old time. That time may lie before the low-water mark of the
// row's lane, where scans no longer read, so the scanner moves the mark back.
struct ReturnedRow {
  Lane lane;
  WallTime due{};  // the row is due then or a little later
};

// One attempt that has ended, or that will not start.
struct FinishedAttempt {
  std::shared_ptr<const ClaimedJob> claimed;
  Outcome outcome;
  bool is_released = false;  // never started: the attempt does not count
  MonoTime started{};        // when the handler began; zero: it did not
  // The slot in the start pool was returned when the attempt ended, so that the next attempt need not wait until the
  // outcome is written.
  bool is_slot_free = false;
};

// Returns the handler of a type, valid as long as the engine. nullptr: jobs of the type cannot run on this node.
// Thread: the runner's.
using HandlerFinder = std::function<Handler*(const BizType&)>;

// Each queue is named for what it holds; its stages are noted as producer -> consumer. A full queue refuses.
struct EngineShared {
  EngineShared(EngineConfig settings, std::vector<Shard> owned, EventSink& sink,
               std::shared_ptr<PollQueue> consumers = nullptr)
      : config(std::move(settings)),
        shards(std::make_shared<const std::vector<Shard>>(std::move(owned))),
        catalog(std::make_shared<const TypeCatalog>()),
        events(sink),
        membership(config.stops_without_lease),
        scans(config.scan_interval, config.lookahead),
        known(config.capacity),
        flow(config.flow ? config.flow : std::make_shared<FlowControl>()),
        limiter(config.max_running),
        polls(consumers ? std::move(consumers) : std::make_shared<PollQueue>(config.max_polls)),
        admission(due, *polls, *flow, limiter, config.capacity, config.hot_above, config.lookahead),
        candidates(config.capacity + config.capacity / 4),
        ended_backlogs(config.capacity),
        returned(config.max_running),
        expired(config.capacity),
        too_late(config.capacity),
        claimed(config.max_running),
        outcomes(config.max_running) {}

  const EngineConfig config;
  Latest<std::vector<Shard>> shards;  // the shards that this node owns and scans, ascending
  GainedShards gained;                // engine -> scanner
  // All shards that live in this database, ascending: a consumer here may get jobs of any of them.
  Latest<std::vector<Shard>> all_shards{std::make_shared<const std::vector<Shard>>()};
  Latest<TypeCatalog> catalog;
  EventSink& events;
  MembershipState membership;
  DbClock db_clock;
  ScanProgress scans;
  UnansweredSince answers;  // since when the finisher waits for an answer
  ClaimsInDoubt claims_in_doubt;
  KnownJobs known;  // the unclaimed jobs in memory
  const std::shared_ptr<FlowControl> flow;
  ConcurrencyLimiter limiter;
  const std::shared_ptr<PollQueue> polls;  // waiting consumers of the node -> claimers
  std::size_t poll_engine = 0;             // this engine's number in `polls`
  DueQueue due;                            // timekeeper, scanner -> admission
  JobAdmission admission;                  // -> claimers
  BoundedQueue<Candidate> candidates;      // scanner, hints -> timekeeper
  BoundedQueue<Lane> ended_backlogs;       // claimers -> scanner, which reads these lanes at once
  BoundedQueue<ReturnedRow> returned;      // finisher -> scanner
  UnreportedReleases unreported;           // writes whose rows are not in `returned` yet
  BoundedQueue<JobId> expired;             // scanner -> lease reaper
  BoundedQueue<TooLateLane> too_late;      // scanner -> lease reaper
  BoundedQueue<ClaimedJob> claimed;        // claimers -> runner
  BoundedQueue<FinishedAttempt> outcomes;  // runner, handlers -> finisher
  std::function<void()> on_refusal;        // called at KnownJobs::Hint::first_full; requests a scan

  bool hint(const Candidate& job);  // as Engine::hint
  // Returns the slots (of the limiter and the start pool) and permits of `n` claimed jobs that have ended.
  void release(TypeId type, std::size_t n) {
    flow->return_all(type, n);
    limiter.release(type, n);  // wakes the claimers
  }
  // As release(), for one job whose slot in the start pool was returned already (FinishedAttempt::is_slot_free).
  void release_ended(TypeId type) {
    flow->return_permit(type);
    limiter.release(type, 1);
  }
  // Returns what was taken for `n` jobs that were not won, or whose claim was released: slots, permits, rate tokens.
  void release_unused(TypeId type, std::size_t n, Pace pace) {
    flow->put_back(type, n, pace, /*is_instant=*/false);
    if (n > 0) flow->notify_capacity();  // engines of other databases may wait for it
    limiter.release(type, n);
  }
  // Consumers or webhook receivers work on these claimed jobs from now on, each until the time given (end of the
  // lease). Returns the jobs' slots. If the type has max_running, each job keeps its permit; otherwise returns the
  // permits too.
  void hand_over(TypeId type, const std::vector<std::pair<Lease, WallTime>>& leases);
  // Reports the lateness of an attempt if it is the job's first start.
  void note_started(const ClaimedJob& attempt) {
    const Job& job = attempt.job;
    if (job.is_first_start()) events.started(job.type_id, *job.lateness());
  }
  // Time limit of a call that writes outcomes; also how long outcomes may wait before claiming stops. It is a third of
  // the shortest lease of any type, at least a second, so that outcomes of jobs claimed meanwhile can be written before
  // the leases of these jobs end.
  Duration outcome_patience() const {
    return std::max<Duration>(catalog.get()->shortest_ttr / 3, std::chrono::seconds(1));
  }
  // Time limit of a claim, and of asking what a claim in doubt has won. Meanwhile the jobs, lane and consumers of that
  // claim wait.
  Duration claim_patience() const {
    constexpr Duration kLongest = std::chrono::seconds(4);  // more than a claim may wait for the lock of a table: 3 s
    return std::min(outcome_patience(), kLongest);
  }
  // True: outcomes have waited for an answer longer than outcome_patience(). Claimers claim nothing then.
  bool has_stuck_outcomes(MonoTime now) const { return answers.has_waited(outcome_patience(), now); }
  // True: outcomes have waited for an answer longer than lease_margin, so the leases of their jobs may have ended. The
  // lease reaper makes no job dead then, because a kept outcome may be that of the job's last attempt.
  bool has_late_outcomes(MonoTime now) const { return answers.has_waited(config.lease_margin, now); }
  // No job is in memory and none runs; consumers may wait.
  bool is_idle() const {
    return known.size() == 0 && candidates.size() == 0 && due.size() == 0 && due.backlog_lanes() == 0 &&
           limiter.running() == 0;
  }
};

}  // namespace tocsin

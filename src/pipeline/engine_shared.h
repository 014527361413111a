// EngineShared: what the stages of one engine share: settings, queues, and the thread-safe objects between them. Engine
// owns it, every stage has a reference. EngineConfig: the settings, made by the node for each of its databases.
// Thread: any.
#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "admission/admission.h"
#include "admission/concurrency_limiter.h"
#include "admission/flow_control.h"
#include "admission/poll_queue.h"
#include "base/bounded_queue.h"
#include "base/latest.h"
#include "pipeline/db_clock.h"
#include "pipeline/known_jobs.h"
#include "ports/event.h"
#include "tocsin/handler.h"

namespace tocsin {

struct EngineConfig {
  std::string node = "node";                               // name of this node: kept with claims and errors
  Duration lookahead = std::chrono::seconds(5);            // how far ahead of now scans read
  Duration scan_interval = std::chrono::seconds(1);        // a lane is read this often, from its low-water mark
  Duration sweep_interval = std::chrono::seconds(30);      // a lane is read this often from its floor (LaneCursor)
  Duration audit_interval = std::chrono::minutes(5);       // a lane is read this often from the beginning of time
  Duration late_commit_margin = std::chrono::seconds(5);   // how far the low-water mark stays behind now
  Duration tick = std::chrono::microseconds(500);          // of the time wheel
  Duration retry_pause = std::chrono::milliseconds(200);   // after a store error
  Duration lease_margin = std::chrono::milliseconds(100);  // a lease is trusted until this long before its end
  // True: claims do not wait until their commit is on disk (pull types and claims after a slow one still do), so
  // attempts start one flush sooner. The price: if the database crashes and is back within start_window, a handler may
  // start a job whose cancel was acknowledged.
  bool async_claims = false;
  // Longest time from the claim to the start of the handler. Less than a failover takes, because a standby may lack the
  // claim.
  Duration start_window = std::chrono::milliseconds(500);
  std::size_t capacity = 100'000;  // candidates in memory, of this engine
  std::size_t window_page = 512;   // rows of one lane per window read
  std::size_t overdue_page = 64;   // rows of one lane per overdue read
  std::size_t many_rows = 512;     // after a cycle that read so many rows, a scan reads a quarter of the shards
  std::size_t claim_batch = 500;   // jobs per claim statement; more makes the last of a batch wait longer than it saves
  std::size_t finish_batch = 500;  // outcomes, or jobs to make dead, per statement
  std::size_t hot_above = 64;  // a type with more jobs due at once is hot; a statement for that many takes about 1 ms
  std::size_t max_running = 4096;     // claimed jobs of this engine, of all types; not BizType::max_running
  std::size_t max_polls = 3000;       // waiting consumers; fewer than the connections that the HTTP server takes
  std::shared_ptr<FlowControl> flow;  // shared by the engines of a node; null: one of its own
  // Called with a job in a shard of another node that this node has made due again, to hint it to that node. Empty: the
  // owner's scan finds it.
  std::function<void(const Candidate&)> tell_owner;

  // Jobs due within this are hinted: a second more than the lookahead, because a hint may reach further than the last
  // scan did. tocsin.hint_window() in SQL is the same time, for the default lookahead.
  Duration hint_window() const { return lookahead + std::chrono::seconds(1); }
};

// A lane with rows, due before `before`, that are too late to run.
struct LateLane {
  Lane lane;
  WallTime before{};
};

// A row whose claim was released: pending again at its old time. That may lie before its lane's low-water mark, where
// scans no longer read, so the scanner moves the mark back.
struct ReturnedRow {
  Lane lane;
  WallTime due{};  // the row is due then or a little later
};

// One attempt that has ended, or that will not start.
struct FinishedRun {
  std::shared_ptr<const ClaimedJob> claimed;
  Outcome outcome;
  bool is_released = false;  // never started: the attempt does not count
  MonoTime started{};        // when the handler began; zero: it did not
  // Its slot in the start pool was returned when the attempt ended: the next attempt need not wait for the outcome to
  // be written.
  bool is_slot_free = false;
};

// Finds the handler of a type; valid as long as the engine. nullptr: its jobs cannot run on this node. Thread: the
// runner's.
using HandlerFinder = std::function<Handler*(const BizType&)>;

// Each queue is named for what it holds; its stages are noted as producer -> consumer. A full one refuses.
struct EngineShared {
  EngineShared(EngineConfig settings, std::vector<Shard> owned, EventSink& sink,
               std::shared_ptr<PollQueue> consumers = nullptr)
      : config(std::move(settings)),
        shards(std::make_shared<const std::vector<Shard>>(std::move(owned))),
        catalog(std::make_shared<const TypeCatalog>()),
        events(sink),
        known(config.capacity),
        flow(config.flow ? config.flow : std::make_shared<FlowControl>()),
        limiter(config.max_running),
        all_polls(consumers ? std::move(consumers) : std::make_shared<PollQueue>(config.max_polls)),
        polls(*all_polls),
        admission(due, polls, *flow, limiter, config.capacity, config.hot_above, config.lookahead),
        candidates(config.capacity + config.capacity / 4),
        ended_backlogs(config.capacity),
        returned(config.max_running),
        expired(config.capacity),
        too_late(config.capacity),
        claimed(config.max_running),
        outcomes(config.max_running) {}

  const EngineConfig config;
  Latest<std::vector<Shard>> shards;  // those that this node owns and scans, in order
  // All shards that live in this database, in order: a consumer here may get jobs of any of them.
  Latest<std::vector<Shard>> all_shards{std::make_shared<const std::vector<Shard>>()};
  Latest<TypeCatalog> catalog;
  EventSink& events;
  DbClock db_clock;
  KnownJobs known;  // the unclaimed jobs in memory
  const std::shared_ptr<FlowControl> flow;
  ConcurrencyLimiter limiter;
  const std::shared_ptr<PollQueue> all_polls;  // keeps `polls` alive
  PollQueue& polls;                            // waiting consumers of the node -> claimers
  std::size_t poll_engine = 0;                 // this engine's number in `polls`
  DueQueue due;                                // timekeeper, scanner -> admission
  JobAdmission admission;                      // -> claimers
  BoundedQueue<Candidate> candidates;          // scanner, hints -> timekeeper
  BoundedQueue<Lane> ended_backlogs;           // claimers -> scanner, to read the lane
  BoundedQueue<ReturnedRow> returned;          // finisher -> scanner
  BoundedQueue<JobId> expired;                 // scanner -> lease reaper
  BoundedQueue<LateLane> too_late;             // scanner -> lease reaper
  BoundedQueue<ClaimedJob> claimed;            // claimers -> runner
  BoundedQueue<FinishedRun> outcomes;          // runner, handlers -> finisher
  std::atomic<bool> is_draining{false};
  // End of the membership lease: past it others may scan this node's shards, so it stops scanning and claiming.
  std::atomic<MonoTime::rep> lease_valid_until{MonoTime::max().time_since_epoch().count()};
  std::atomic<bool> sleeps_without_lease{false};  // a stage sleeps until the lease is extended
  std::atomic<bool> is_alone{false};              // sole member: no other node uses this database
  std::atomic<bool> is_listening{false};          // notifications of the database arrive
  // A scan will still read every row due later than this, so the hint of such a job is refused if its type uses half of
  // its share of memory. Set by the scanner. max(): no hint is refused for its time.
  std::atomic<WallTime> scan_horizon{WallTime::max()};
  std::atomic<bool> has_refused{false};  // memory was full for a hint since the scanner last read this
  std::function<void(const Candidate&)> tell_owner = config.tell_owner;
  std::function<void()> on_refusal;          // called when has_refused becomes true at full lookahead: scan soon
  std::atomic<MonoTime::rep> scanned_at{0};  // MonoTime: end of the last cycle that read all owned shards; 0: none yet

  // MonoTime: when the finisher sent the first request that the database has not answered yet; else kAnswered. Set by
  // the finisher.
  static constexpr MonoTime::rep kAnswered = std::numeric_limits<MonoTime::rep>::min();
  std::atomic<MonoTime::rep> unanswered_since{kAnswered};

  std::atomic<Duration::rep> scan_took{0};  // the last cycle of scans, from its first statement to its last answer
  // Why jobs may start late although nothing fails; empty: the scans keep up with their interval.
  std::string scan_trouble(MonoTime now) const;
  // The time since scanned_at; nullopt: no cycle has ended yet.
  std::optional<Duration> scan_age(MonoTime now) const {
    const auto at = scanned_at.load();
    return at == 0 ? std::nullopt : std::optional(now - MonoTime(Duration(at)));
  }
  // Returns the slots (of the limiter and the start pool) and permits of `n` claimed jobs that have ended.
  void release(TypeId type, std::size_t n) {
    flow->release(type, n);
    limiter.release(type, n);  // wakes the claimers
  }
  // The same for one job whose slot in the start pool was returned already (FinishedRun::is_slot_free).
  void release_ended(TypeId type) {
    flow->release_permit(type);
    limiter.release(type, 1);
  }
  // Returns the slots, permits and rate tokens of `n` jobs that were not won, or whose claim was released.
  void release_unused(TypeId type, std::size_t n, Pace pace) {
    flow->put_back(type, n, pace, /*is_instant=*/false);
    if (n > 0) flow->notify_capacity();  // engines of other databases may wait for it
    limiter.release(type, n);
  }
  // Consumers or receivers work on these claimed jobs from now on, until the times given (end of the lease). Returns
  // their slots, and their permits unless the type has max_running.
  void hand_over(TypeId type, const std::vector<std::pair<Lease, WallTime>>& leases);
  bool hint(const Candidate& job);  // as Engine::hint. Thread: any.
  // Reports the lateness of an attempt if it is the job's first start.
  void note_started(const ClaimedJob& attempt) {
    const Job& job = attempt.job;
    if (job.is_first_start()) events.started(job.type_id, *job.lateness());
  }
  // Whether the membership lease has ended.
  bool is_lease_lost(MonoTime now) const { return now >= MonoTime(Duration(lease_valid_until.load())); }
  // The same for a stage that returns kWhenWoken while this is true: a new lease wakes it.
  bool stops_without_lease(MonoTime now) {
    if (!is_lease_lost(now)) return false;
    // Set before the second check: an extension of the lease in between is seen by it, or wakes this stage.
    sleeps_without_lease = true;
    return is_lease_lost(now);
  }
  // Time limit of a call that writes outcomes, and how long outcomes may wait before claiming stops: a third of the
  // shortest lease, at least a second, so that outcomes of jobs claimed meanwhile can be written before their leases
  // end.
  Duration outcome_patience() const {
    return std::max<Duration>(catalog.get()->shortest_ttr / 3, std::chrono::seconds(1));
  }
  // Time limit of a claim, and of the question what a claim in doubt has won: its lane, its jobs and its consumers
  // wait.
  Duration claim_patience() const {
    constexpr Duration kLongest = std::chrono::seconds(4);  // more than a claim may wait for the lock of a table: 3 s
    return std::min(outcome_patience(), kLongest);
  }
  // True: outcomes have waited for an answer longer than outcome_patience(). Claimers claim nothing then.
  bool has_stuck_outcomes(MonoTime now) const {
    const auto since = unanswered_since.load();
    return since != kAnswered && now - MonoTime(Duration(since)) > outcome_patience();
  }
  // No job is in memory and none runs; consumers may wait.
  bool is_idle() const {
    return known.size() == 0 && candidates.size() == 0 && due.size() == 0 && due.backlog_lanes() == 0 &&
           limiter.running() == 0;
  }
};

}  // namespace tocsin

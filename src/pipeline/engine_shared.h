// EngineShared: what the stages of one engine share (settings, queues, and the thread-safe objects between them). One
// per engine; Engine owns it, every stage has a reference.
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
  std::string node = "node";
  Duration lookahead = std::chrono::seconds(5);
  Duration scan_interval = std::chrono::seconds(1);
  Duration sweep_interval = std::chrono::seconds(30);
  Duration audit_interval = std::chrono::minutes(5);      // from the beginning of time, whatever was assumed
  Duration late_commit_margin = std::chrono::seconds(5);  // how far the low-water mark stays behind now
  Duration tick = std::chrono::microseconds(500);
  Duration retry_pause = std::chrono::milliseconds(200);   // after a store error
  Duration lease_margin = std::chrono::milliseconds(100);  // trust in a lease ends so much before it does
  // Claims of handlers outside of the database do not wait for the disk: sooner by one flush, and after a crash that is
  // over within start_window a handler may start although its cancel was acknowledged.
  bool async_claims = false;
  // From the claim to the start of the handler at most: less than a failover takes, for a standby may lack the claim.
  Duration start_window = std::chrono::milliseconds(500);
  std::size_t capacity = 100'000;  // candidates in memory
  std::size_t window_page = 512;   // rows of one lane per scan
  std::size_t overdue_page = 64;
  std::size_t many_rows = 512;    // found by the scans of an interval: those of the next one read by scan groups
  std::size_t claim_batch = 500;  // jobs per claim statement; more makes the last of a batch wait longer than it saves
  std::size_t finish_batch = 500;
  std::size_t hot_above = 64;  // a type with more jobs due at once is hot; a statement for that many takes about 1 ms
  std::size_t max_running = 4096;     // claimed jobs on this node
  std::size_t max_polls = 3000;       // waiting consumers; fewer than the connections that the HTTP server takes
  std::shared_ptr<FlowControl> flow;  // of the node, when it has several engines; null: one of its own
};

// Rows of a lane that were found too late to run.
struct LateLane {
  Lane lane;
  WallTime before{};
};

// One attempt that has ended, or that will not start.
struct FinishedRun {
  std::shared_ptr<const ClaimedJob> claimed;
  Outcome outcome;
  bool is_given_back = false;  // never started: the attempt does not count
  MonoTime started{};          // when the handler began
  bool is_slot_free = false;   // in the start pool: the next attempt need not wait for the outcome to be written
};

// Finds the handler of a type. nullptr: its jobs cannot run on this node.
using HandlerFinder = std::function<Handler*(const BizType&)>;

// Queues, in the order jobs flow; each named for what it holds.
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
        expired(config.capacity),
        too_late(config.capacity),
        claimed(config.max_running),
        outcomes(config.max_running) {}

  const EngineConfig config;
  Latest<std::vector<Shard>> shards;  // that this node owns
  // All shards that live in this database: a consumer here may get jobs of any of them.
  Latest<std::vector<Shard>> all_shards{std::make_shared<const std::vector<Shard>>()};
  Latest<TypeCatalog> catalog;
  EventSink& events;
  DbClock db_clock;
  KnownJobs known;
  const std::shared_ptr<FlowControl> flow;
  ConcurrencyLimiter limiter;
  const std::shared_ptr<PollQueue> all_polls;  // of the node; here to live long enough
  PollQueue& polls;                            // consumers that wait -> claimers
  std::size_t poll_seat = 0;                   // this engine's number in it
  DueQueue due;                                // timekeeper, scanner -> admission
  JobAdmission admission;                      // -> claimers
  BoundedQueue<Candidate> candidates;          // scanner, hints -> timekeeper
  BoundedQueue<Lane> ended_backlogs;           // claimers -> scanner
  BoundedQueue<JobId> expired;                 // scanner -> lease reaper
  BoundedQueue<LateLane> too_late;             // scanner -> lease reaper
  BoundedQueue<ClaimedJob> claimed;            // claimers -> runner
  BoundedQueue<FinishedRun> outcomes;          // runner, handlers -> finisher
  std::atomic<bool> is_draining{false};
  // End of the membership lease: past it others may scan this node's shards, so it stops scanning and claiming.
  std::atomic<MonoTime::rep> trusted_until{MonoTime::max().time_since_epoch().count()};
  std::atomic<bool> was_cut_off{false};   // a stage sleeps because the lease has ended
  std::atomic<bool> is_alone{false};      // sole member: no other node uses this database
  std::atomic<bool> is_listening{false};  // notifications are heard
  // While memory is tight, hints due after this are refused: a scan that has not begun yet will read their rows.
  std::atomic<WallTime> scan_horizon{WallTime::max()};
  std::atomic<bool> has_refused{false};      // hints, since the scanner has looked
  std::function<void()> on_refusal;          // of the first, while scans look as far ahead as ever
  std::atomic<MonoTime::rep> scanned_at{0};  // when all its shards had been scanned last; 0: not yet

  // When the finisher asked first of what the database has not answered yet.
  static constexpr MonoTime::rep kAnswered = std::numeric_limits<MonoTime::rep>::min();
  std::atomic<MonoTime::rep> unanswered_since{kAnswered};

  std::atomic<Duration::rep> scan_took{0};  // the last cycle of scans, from its first statement to its last answer
  // Why jobs may start late although nothing fails; empty: the scans keep up with their interval.
  std::string scan_trouble(MonoTime now) const;
  std::optional<Duration> scan_age(MonoTime now) const {
    const auto at = scanned_at.load();
    return at == 0 ? std::nullopt : std::optional(now - MonoTime(Duration(at)));
  }
  // Returns the slots and permits of claimed jobs that have ended.
  void release(TypeId type, std::size_t n) {
    flow->release(type, n);
    limiter.release(type, n);  // wakes the claimers
  }
  // A claimed job that is over, and whose slot in the start pool is free already.
  void release_ended(TypeId type) {
    flow->release_permit(type);
    limiter.release(type, 1);
  }
  // Returns slots and permits taken for a claim that won fewer jobs.
  void release_unused(TypeId type, std::size_t n, Pace pace) {
    flow->put_back(type, n, pace, /*is_instant=*/false);
    if (n > 0) flow->notify_capacity();  // engines of other databases may wait for it
    limiter.release(type, n);
  }
  // Claimed jobs that consumers or receivers work on from now on: returns their slots, and their permits unless the
  // type has max_running.
  void hand_over(TypeId type, const std::vector<std::pair<Lease, WallTime>>& leases);
  bool hint(const Candidate& job);  // as Engine::hint. Thread: any.
  // Reports the lateness of an attempt if it is the job's first start.
  void note_started(const ClaimedJob& attempt) {
    const Job& job = attempt.job;
    if (job.is_first_start()) events.started(job.type_id, *job.lateness());
  }
  bool is_cut_off(MonoTime now) const { return now >= MonoTime(Duration(trusted_until.load())); }
  // The same for a stage that then sleeps until the lease is renewed.
  bool stops_cut_off(MonoTime now) {
    if (!is_cut_off(now)) return false;
    was_cut_off = true;  // then a second look: who prolongs the trust meanwhile either is seen or wakes this stage
    return is_cut_off(now);
  }
  // How long the answer to a written outcome may take, and how long outcomes may wait for one while jobs are claimed:
  // a part of the shortest lease, so that what is claimed meanwhile is written before its lease ends.
  Duration outcome_patience() const {
    return std::max<Duration>(catalog.get()->shortest_ttr / 3, std::chrono::seconds(1));
  }
  bool has_stuck_outcomes(MonoTime now) const {
    const auto since = unanswered_since.load();
    return since != kAnswered && now - MonoTime(Duration(since)) > outcome_patience();
  }
  // Nothing is in memory and nothing runs.
  bool is_idle() const {
    return known.size() == 0 && candidates.size() == 0 && due.size() == 0 && due.backlog_lanes() == 0 &&
           limiter.running() == 0;
  }
};

}  // namespace tocsin

// Engine: the stages that fire the jobs of one database on this node, and what they share. Owned by DatabaseEngine
// (node/database_engine.h), one per database. Engine has no threads: the node gives each stage a loop thread, the
// simulator a fiber.
//
//   scanner -> candidates -> timekeeper -> due -> claimers -> claimed -> runner -> outcomes -> finisher
//   scanner -> due (backlog)               consumers -> polls -> claimers -> consumers (pull types)
//   scanner -> expired, too_late -> lease reaper        polls -> poll-timeout sweeper -> consumers
#pragma once

#include <memory>
#include <vector>

#include "pipeline/claimer.h"
#include "pipeline/finisher.h"
#include "pipeline/lease_reaper.h"
#include "pipeline/poll_timeout_sweeper.h"
#include "pipeline/runner.h"
#include "pipeline/scanner.h"
#include "pipeline/timekeeper.h"

namespace tocsin {

// The stores of the stages; each stage that calls a store has one of its own, with its own connection.
struct EngineStores {
  JobStore& scanner;
  // One per claimer: the first for the primary claimer, the last for the priority claimer if there are several
  // (ClaimerRole, admission/admission.h).
  std::vector<JobStore*> claimers;
  JobStore& finisher;
  JobStore& lease_reaper;
};

class Engine {
 public:
  // `owned`: the shards (slices of all jobs) to scan, ascending. `find_handler`: called on the runner's thread. `seed`:
  // of claim tokens and back-offs; random, and new at each start of the process. `polls`: the waiting consumers, shared
  // with the node's other engines; nullptr: the engine makes a queue of its own.
  Engine(EngineConfig config, std::vector<Shard> owned, EngineStores stores, HandlerFinder find_handler,
         EventSink& events, std::uint64_t seed, std::shared_ptr<PollQueue> polls = nullptr);

  // The last three of stages() work on claimed jobs (runner, finisher, lease reaper), so they are stopped last.
  static constexpr int kStagesAfterClaim = 3;

  // Every stage that needs a loop, in the order jobs flow.
  std::vector<Stage*> stages();

  // The wakers of the stages' loops; one per entry of stages(), in that order. REQUIRES: before the first step.
  void set_wakers(const std::vector<Waker*>& wakers);

  // Hints a job of an owned shard: puts it onto the time wheel without waiting for a scan, because it was created or
  // moved to within the lookahead. False: a scan will find it, because memory is full, the job is due beyond the scan
  // horizon (the time beyond which no scan has read), its type is paused, or the engine drains. REQUIRES: the row is
  // committed with this fire_at. Thread: any.
  bool hint(const Candidate& job) { return shared_.hint(job); }

  // Queues a consumer's request for jobs of a pull type. False: the queue is full. Thread: any.
  bool ask(PollPtr poll) { return shared_.polls->add(std::move(poll)); }
  // Answers every waiting and every later consumer of the shared queue with no jobs. Jobs that are being claimed for a
  // consumer still reach it. Thread: any.
  void end_polls() { shared_.polls->close(); }

  // Reads every owned lane again from the beginning, at once: rows may have been missed. Thread: any.
  void request_sweep();

  // Replaces the shards to scan, ascending. Gained shards are read from the beginning of time, at once. Thread: any.
  void set_shards(std::vector<Shard> owned);
  // Replaces the list of all shards that live in this database, ascending. Lanes of pull types are read, and leases are
  // checked, in all of them, not only in those of this node. Thread: any.
  void set_all_shards(std::vector<Shard> all) {
    shared_.all_shards.set(std::make_shared<const std::vector<Shard>>(std::move(all)));
  }
  // Sets the end of the node's membership lease (EngineConfig::stops_without_lease). Before the first call the lease
  // has no end. Thread: any.
  void trust_until(MonoTime time);
  // Set whether this node is the only live one, and whether the database's notifications arrive. While both are true an
  // idle engine scans half as often. Thread: any.
  void set_sole_member(bool is_sole_member);
  void set_listening(bool is_listening);

  // Adds a sample of the database's clock from a scan outside of this engine. Thread: any.
  void note_time(const ScanReply& reply) { shared_.db_clock.sample(reply.asked, reply.answered, reply.db_now); }

  // Replaces the types whose jobs run here; jobs of other types are neither scanned nor claimed. Thread: any.
  void set_catalog(std::shared_ptr<const TypeCatalog> catalog);

  // Jobs due here and not claimed yet. Thread: any.
  Waiting waiting(TypeId type) const { return shared_.due.waiting(type); }

  // Stops scanning and claiming, ends the polls, and releases claimed jobs that have not started. Thread: any.
  void begin_drain();
  // Whether no claimed job is left in memory; jobs leased to consumers do not count. Thread: any.
  bool is_drained() const { return shared_.limiter.running() == 0; }

  const EngineShared& shared() const { return shared_; }

 private:
  void scan_soon();
  void wake_all();

  EngineShared shared_;
  Scanner scanner_;
  Timekeeper timekeeper_;
  PollTimeoutSweeper poll_timeout_sweeper_;
  std::vector<std::unique_ptr<Claimer>> claimers_;
  Runner runner_;
  Finisher finisher_;
  LeaseReaper lease_reaper_;
  std::vector<Waker*> wakers_;
};

}  // namespace tocsin

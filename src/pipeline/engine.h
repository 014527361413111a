// The stages of one node on one database, wired together. Brings no threads: the node gives each stage a loop, the
// simulator a fiber.
//
//   scanner -> candidates -> timekeeper -> due -> claimers -> claimed -> runner -> outcomes -> finisher
//           -> expired -> lease reaper           polls -> claimers -> consumers (pull types), poll-timeout sweeper
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

// One store per stage that calls one: each has its own connection.
struct EngineStores {
  JobStore& scanner;
  std::vector<JobStore*>
      claimers;  // as many claimers as stores: primary, secondary ones, and last of several the priority claimer
  JobStore& finisher;
  JobStore& lease_reaper;
};

class Engine {
 public:
  // `polls`: shared with the node's other engines; nullptr: it has its own.
  Engine(EngineConfig config, std::vector<Shard> owned, EngineStores stores, HandlerFinder find_handler,
         EventSink& events, std::uint64_t seed, std::shared_ptr<PollQueue> polls = nullptr);

  static constexpr int kStagesAfterClaim = 3;  // of stages(), the last: runner, finisher, lease reaper

  // Every stage that wants a loop, in the order jobs flow.
  std::vector<Stage*> stages();

  // Who is woken when a stage has work; one waker per entry of stages(), in that order. REQUIRES: before the first
  // step.
  void set_wakers(const std::vector<Waker*>& wakers);

  // A job of an owned shard that was created or moved and is due within the lookahead: spares it the wait for the next
  // scan. False: no room, or too far; the scan will find it. REQUIRES: that is committed, and the time is the row's.
  // Thread: any.
  bool hint(const Candidate& job) { return shared_.hint(job); }

  // A consumer asks for jobs of a pull type. False: too many wait already. Thread: any.
  bool ask(PollPtr poll) { return shared_.polls.add(std::move(poll)); }
  // Answers every consumer with nothing, now and from now on; what is being claimed for one still goes to it. Thread:
  // any.
  void send_consumers_home() { shared_.polls.close(); }

  // Reads every lane again from the beginning with the next scan. Thread: any.
  void request_sweep();

  // What to scan from now on, in order; shards gained are read from the beginning of time at once. Thread: any.
  void set_shards(std::vector<Shard> owned);
  // All shards that live in this database. Thread: any.
  void set_all_shards(std::vector<Shard> all) {
    shared_.all_shards.set(std::make_shared<const std::vector<Shard>>(std::move(all)));
  }
  // Scanning and claiming end then, unless a later time is told before. Thread: any.
  void trust_until(MonoTime time);
  // Whether no other node works here, and whether notifications are heard. While both hold next to nothing comes
  // unseen, and a node that has nothing to do scans half as often. Thread: any.
  void set_alone(bool is_alone);
  void set_listening(bool is_listening);

  // The database's clock as a scan told it. Thread: any.
  void note_time(const ScanReply& reply) { shared_.db_clock.sample(reply.asked, reply.answered, reply.db_now); }

  void set_catalog(std::shared_ptr<const TypeCatalog> catalog);  // Thread: any.

  // Due here and not claimed yet. Thread: any.
  Waiting waiting(TypeId type) const { return shared_.due.waiting(type); }

  // Stops scanning and claiming; claimed jobs that have not started are given back. Thread: any.
  void begin_drain();
  // Nothing claimed is left in memory. Thread: any.
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

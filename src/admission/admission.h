// JobAdmission: decides which due jobs are claimed next. EngineShared (pipeline/engine_shared.h) owns one per engine,
// that is, per database of a node. A claimer calls next_batch() before each claim. A job is in a batch only if it got
// all permits, rate tokens and slots that it needs, so every claimed job can start.
//
// Due work is in the DueQueue: single jobs in memory, and the backlog. The backlog consists of lanes (a lane: the jobs
// of one type in one shard) whose overdue rows are not in memory and are claimed from the table.
//
// Each rule is an object or a type:
//  - LoadClass: light types (few jobs due), hot types (many jobs due) and backlog lanes are served in turns. A batch
//    never mixes them.
//  - TurnOrder: within a class, the forms of claims (fire, lease, claim) take turns; within a form, the types.
//  - FlowControl: permits of max_running, rate tokens, slots of the start pools (connections to an endpoint, threads).
//  - ConcurrencyLimiter: how many claimed jobs a type may hold in this engine.
//  - MemoryShare: how many due jobs stay in memory while they may not start. The other jobs become backlog.
//
// Thread: any (the claimers' threads). next_batch() holds the lock of the DueQueue, also while it calls the other
// objects.
#pragma once

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <vector>

#include "admission/concurrency_limiter.h"
#include "admission/due_queue.h"
#include "admission/flow_control.h"
#include "admission/memory_share.h"
#include "admission/poll_queue.h"
#include "admission/turn_order.h"

namespace tocsin {

// Work for one store call: jobs from memory, or the backlog of one lane. A batch has types of one form only: all are
// instant (claimed and finished in one statement), all are pull types (claimed for waiting consumers), or all are
// neither of these.
struct DueBatch {
  std::vector<Candidate> jobs;
  std::optional<Backlog> backlog;
  std::size_t limit = 0;  // backlog: how many rows to claim
  bool is_instant = false;
  bool is_pull = false;
  bool is_paced = false;             // a type in the batch has a rate
  bool is_limited_to_light = false;  // the batch is empty because a secondary claimer may serve only light types now
  // Pull types: the consumers. Each one gets the next `n` jobs of `jobs`, or the next `n` rows won of the backlog.
  std::vector<PollShare> polls;
  // Jobs that left the queue and are not claimed: their type is unknown or paused, they are too late, or they were
  // moved to a backlog. The caller removes them from KnownJobs.
  std::vector<Candidate> dropped;
  bool has_more_to_drop = false;     // more such jobs are left: call next_batch() again at once
  MonoTime again = MonoTime::max();  // when to call again without a wake-up, because a rate token or slot may be free
  bool empty() const { return jobs.empty() && !backlog; }
  Pace pace() const { return backlog ? backlog->pace : Pace::fresh; }
};

// The types and the clock readings that a batch is made with.
struct AdmissionTime {
  const TypeCatalog& catalog;
  WallTime now;  // the database's clock, as DbClock::at_least() estimates it
  MonoTime local_now{};
};

// Which types a claimer serves.
enum class ClaimerRole {
  primary,    // all types
  secondary,  // all types; after a light type was served while a hot type or a backlog waited, only light types for 50
              // ms, because their statements need the processors of the database
  priority,   // light types only, at most `hot_above` jobs in a batch; so its statements stay short, and each form of
              // claims soon has its turn although the other claimers run long statements
};

class JobAdmission {
 public:
  // `capacity`: the most jobs that the engine keeps in memory. `hot_above`: a type with more due jobs than this in
  // memory is hot. `lookahead`: of a type with a catch-up rate, rows due longer ago than this start at the catch-up
  // rate. So jobs of such a type that leave memory make a backlog that begins this long ago.
  JobAdmission(DueQueue& due, PollQueue& polls, FlowControl& flow, ConcurrencyLimiter& limiter, std::size_t capacity,
               std::size_t hot_above, Duration lookahead)
      : due_(due),
        polls_(polls),
        flow_(flow),
        limiter_(limiter),
        memory_(capacity, lookahead),
        hot_above_(hot_above),
        lookahead_(lookahead) {}

  // Takes the next batch of at most `most` jobs, with the slots, permits and rate tokens that they need. For each job
  // that it does not win, the caller must return these (EngineShared::release_unused()). Empty batch: nothing may
  // start now. A backlog lane that was taken counts as backlog until the caller calls DueQueue::put_back() or
  // end_backlog().
  DueBatch next_batch(std::size_t most, const AdmissionTime& time, ClaimerRole role = ClaimerRole::primary);

 private:
  enum LoadClass { light, hot, backlog };
  static constexpr std::size_t kClasses = 3, kForms = 3;

  // The forms of claims, one per batch: fire for instant types, lease for pull types, claim for all others.
  enum ClaimForm : std::size_t { fire_form, lease_form, claim_form };
  static ClaimForm form_of(const BizType& type) {
    return type.is_instant() ? fire_form : type.is_pull() ? lease_form : claim_form;
  }

  // A type that may start something now.
  struct Ready {
    DueQueue::TypeQueue* queue;
    const BizType* type;
  };
  struct Line {  // the ready types of one class and form, by ascending id
    std::vector<TypeId> ids;
    std::vector<Ready> types;
    std::size_t size() const { return ids.size(); }
  };
  // One call of next_batch(), under the lock of the queues.
  struct Round {
    DueQueue::Locked& due;
    const AdmissionTime& time;
    DueBatch& batch;
    std::array<std::array<Line, kForms>, kClasses> lines = {};
    std::map<const StartPool*, std::size_t> waiting = {};  // types, by the pool that they wait for
    bool has_hot = false;
    // How many more jobs the round may drop.
    std::size_t may_drop() const { return kMostDropped - std::min(kMostDropped, batch.dropped.size()); }
  };

  void sort_types(Round& round);
  // Moves the jobs of a limited type beyond its share of memory to the backlog.
  void spill(Round& round, DueQueue::TypeQueue& queue, const BizType& type);
  void add_ready(Round& round, DueQueue::TypeQueue& queue, const BizType& type);
  bool serve(Round& round, LoadClass load, std::size_t most);
  bool take_jobs(Round& round, LoadClass load, std::size_t form, std::size_t most);
  std::size_t take_from(Round& round, const Ready& ready, std::size_t want);
  bool take_backlog(Round& round, std::size_t form, std::size_t most);
  bool take_lane(Round& round, const Ready& ready, std::size_t most);
  // Takes slots, permits, rate tokens and (pull types) consumers for up to `want` jobs; returns for how many it got
  // all. `one_ttr`: only consumers that ask for the same lease length, because one claim of a backlog has one length.
  std::size_t take_slots(Round& round, const BizType& type, std::size_t want, Pace pace, bool one_ttr);
  std::size_t drop_unfit(Round& round, const Ready& ready, std::size_t want);

  // The most jobs that one round drops (jobs of held types, too late jobs, jobs that a backlog covers): under 1 ms.
  // Without a bound a flood could drop all jobs in memory at once, and nothing could be pushed or claimed meanwhile.
  static constexpr std::size_t kMostDropped = 2'000;
  // How long due jobs stay in memory without a consumer: consumers that are busy with a batch ask again soon.
  static constexpr Duration kUnaskedStay = std::chrono::seconds(10);
  // The most rows of one lane's backlog per claim. Larger pieces save only a tenth of the time, and make the lanes of a
  // type unequally late.
  static constexpr std::size_t kBacklogPiece = 256;
  static constexpr Duration kLightOnlyTime = std::chrono::milliseconds(50);  // how long light types keep the secondary
  static constexpr Duration kLookAgain = std::chrono::milliseconds(50);      // another engine may have freed a slot

  DueQueue& due_;
  PollQueue& polls_;
  FlowControl& flow_;
  ConcurrencyLimiter& limiter_;
  const MemoryShare memory_;
  const std::size_t hot_above_;
  const Duration lookahead_;
  // Under the lock of due_.
  std::array<std::array<TurnOrder, kForms>, kClasses> types_turn_;
  std::array<std::size_t, kClasses> forms_turn_{};
  unsigned turn_ = 0;              // of the load classes
  WallTime light_until_{};         // until then secondary claimers serve only light types
  std::size_t limited_types_ = 0;  // limited types (memory_share.h) in the round before: they share a quarter
};

}  // namespace tocsin

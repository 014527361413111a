// JobAdmission: decides which due jobs are claimed next. Each claimer of an engine calls next_batch() before a claim. A
// job leaves the DueQueue for a batch only with the permits, rate tokens and slots that it needs, so every claimed job
// can start.
//
// Each rule is an object or a type:
//  - LoadClass: light types (few jobs due), hot types and backlog lanes (overdue rows that are not in memory) are
//    served in turns, never in one batch.
//  - TurnOrder: within a class the forms of claims (fire, lease, claim) take turns, within a form the types.
//  - FlowControl: permits of max_running, rates, slots of the start pools (connections to an endpoint, threads).
//  - ConcurrencyLimiter: how many claimed jobs a type may hold in this engine.
//  - MemoryShare: how many due jobs stay in memory while they may not start. The others become backlog.
//
// Thread: any. next_batch() holds the lock of the DueQueue, also while it calls the other objects.
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

// Work for one store call: jobs from memory, or the backlog of one lane. Its types are all instant (claimed and
// finished in one statement), all pull (claimed for consumers that wait), or all neither.
struct DueBatch {
  std::vector<Candidate> jobs;
  std::optional<Backlog> backlog;
  std::size_t limit = 0;  // backlog: how many rows to claim
  bool is_instant = false;
  bool is_pull = false;
  bool is_paced = false;           // a type of it has a rate
  bool is_left_to_others = false;  // empty, for a secondary claimer: only light types are served for now
  std::vector<PollShare> polls;    // pull: the consumers; each has the next `n` of `jobs`, or of the backlog's rows won
  // Have left the queue and are not claimed: type unknown or paused, too late, or moved to a backlog. The caller
  // removes them from KnownJobs.
  std::vector<Candidate> dropped;
  bool has_more_to_drop = false;     // the next call drops more
  MonoTime again = MonoTime::max();  // when to ask although not woken: for a rate or a slot
  bool empty() const { return jobs.empty() && !backlog; }
  Pace pace() const { return backlog ? backlog->pace : Pace::fresh; }
};

// The types and the clock readings that a batch is made with.
struct AdmissionTime {
  const TypeCatalog& catalog;
  WallTime now;  // of the database, as DbClock::at_least() says
  MonoTime local_now{};
};

// Which types a claimer serves.
enum class ClaimerRole {
  primary,    // all types
  secondary,  // all types; but for 50 ms after a light one was served while a hot one waited, only light ones: the
              // statements for them need the database's processors
  priority,   // light types only, and a batch has at most `hot_above` jobs: where many types are light, its statements
              // stay short, so that it soon serves a form whose turn comes while the others have long ones
};

class JobAdmission {
 public:
  // `capacity`: jobs that the engine keeps in memory at most. A type with more than `hot_above` due jobs in memory is
  // hot. `lookahead`: if a type has a catch-up rate, its rows due longer ago start at that rate, and so its jobs that
  // leave memory make a backlog that begins this long ago.
  JobAdmission(DueQueue& due, PollQueue& polls, FlowControl& flow, ConcurrencyLimiter& limiter, std::size_t capacity,
               std::size_t hot_above, Duration lookahead)
      : due_(due),
        polls_(polls),
        flow_(flow),
        limiter_(limiter),
        memory_(capacity, lookahead),
        hot_above_(hot_above),
        lookahead_(lookahead) {}

  // Takes the next batch of at most `most` jobs, with the slots, permits and rate tokens that they need: the caller
  // must return those of jobs that it does not win. Empty: nothing may start now. A backlog lane that was taken counts
  // as backlog until the caller calls DueQueue::put_back() or end_backlog().
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
  struct Line {  // the ready types of one class and form, by id
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
  // Takes what up to `want` jobs need, consumers included, and returns for how many. `one_ttr`: all with the same lease
  // length, as the claim of a backlog needs.
  std::size_t take_slots(Round& round, const BizType& type, std::size_t want, Pace pace, bool one_ttr);
  std::size_t drop_unfit(Round& round, const Ready& ready, std::size_t want);

  // Jobs of held types, too late jobs and those of backlog lanes that one round drops: under 1 ms. A flood may drop all
  // memory has, and meanwhile nothing else is pushed or claimed.
  static constexpr std::size_t kMostDropped = 2'000;
  // How long due jobs stay in memory without a consumer: consumers that are busy with a batch ask again soon.
  static constexpr Duration kUnaskedStay = std::chrono::seconds(10);
  // Rows of one lane's backlog per claim: larger pieces save a tenth of the time and make lanes of one type unequally
  // late.
  static constexpr std::size_t kBacklogPiece = 256;
  static constexpr Duration kLightMemory = std::chrono::milliseconds(50);  // how long light types keep the secondary
  static constexpr Duration kLookAgain = std::chrono::milliseconds(50);    // another engine may have freed a slot

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

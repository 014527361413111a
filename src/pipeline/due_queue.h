// What is due and waits for a claim: single jobs from the wheel, and lanes whose backlog is claimed straight from the
// table. Kept per type and served in turns, so a flooded type delays only itself. Jobs of pull types are taken only
// together with the consumers who asked for them; those that wait long, or are many, leave memory: their lanes become
// backlog. So do the jobs of a type that may not start as many as are due.
//
// Invariants: a lane is in the backlog at most once for each pace. Single jobs are bounded by KnownJobs, lanes by
// shards x types. Thread: any.
#pragma once

#include <array>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/waker.h"
#include "pipeline/flow_control.h"
#include "pipeline/poll_queue.h"
#include "pipeline/running_gate.h"
#include "tocsin/biz_type.h"
#include "tocsin/job_store.h"

namespace tocsin {

// A lane with overdue rows that nobody holds in memory; they lie within `span`.
struct Backlog {
  Lane lane;
  DueSpan span;
  Pace pace = Pace::fresh;
};

// Work for one store call. Either jobs or a backlog; all of instant types, or all of pull types, or none of either.
struct DueBatch {
  std::vector<Candidate> jobs;
  std::optional<Backlog> backlog;
  std::size_t limit = 0;  // backlog: how many rows to claim
  bool is_instant = false;
  bool is_pull = false;
  bool is_paced = false;             // by a rate
  bool is_left_to_others = false;    // empty, but there are crowds that a helper leaves alone for now
  std::vector<PollShare> polls;      // for whom, in the order of the jobs
  std::vector<Candidate> dropped;    // held back, gone, too late or not asked for: forget them, the rows are pending
  MonoTime again = MonoTime::max();  // when a rate lets the next one go
  bool empty() const { return jobs.empty() && !backlog; }
  Pace pace() const { return backlog ? backlog->pace : Pace::fresh; }
};

// What the node lets run now.
struct RunRules {
  const TypeCatalog& catalog;
  WallTime now;
  MonoTime local_now{};
  FlowControl& flow;
};

// Which types a claimer serves. A type is crowded while many of its jobs are due at once.
enum class ClaimerRole {
  bulk,     // all of them, crowded and others in turn, never in one batch: a statement for hundreds of jobs takes long
  helper,   // like bulk, but leaves the crowds alone while other types have jobs due: they need the database's
            // processors
  express,  // those that are not crowded: their jobs start on time while the others' statements run
};

class DueQueue {
 public:
  // `capacity`: of all jobs in memory. `crowd`: a type with more jobs due at once is crowded. `lookahead`: what is
  // later than that when it is found goes at the catch-up pace.
  DueQueue(PollQueue& polls, std::size_t capacity, std::size_t crowd, Duration lookahead = std::chrono::seconds(5))
      : polls_(polls), most_held_back_(capacity / 32 + 1), crowd_(crowd), lookahead_(lookahead) {}

  // Woken by every push. REQUIRES: set before the first push.
  void set_consumers(std::vector<Waker*> consumers) { consumers_ = std::move(consumers); }

  void push(std::span<const Candidate> jobs);
  void push_backlog(const Backlog& backlog);  // no effect when the lane is in it already
  bool has_backlog(Lane lane, Pace pace = Pace::fresh) const;

  // Takes the next batch of at most `most` jobs; slots of `gate` are taken for types that are not instant. A backlog
  // lane taken stays in the backlog until put_back() or end_backlog().
  DueBatch pop(std::size_t most, const RunRules& rules, RunningGate& gate, ClaimerRole role = ClaimerRole::bulk);
  void put_back(const Backlog& backlog);  // to the end of the turn
  void end_backlog(const Backlog& backlog);
  // Takes another lane of the backlog, for whoever found too little in one.
  std::optional<Backlog> next_lane(TypeId type, Pace pace);

  Waiting waiting(TypeId type) const;
  std::size_t size() const;  // single jobs
  std::size_t size(TypeId type) const;
  std::size_t backlog_lanes() const;

 private:
  struct TypeQueue {
    std::deque<Candidate> jobs;
    std::deque<Backlog> backlog;
    WallTime asked_at{};  // pull: when consumers were last seen to wait
  };
  using Turn = std::map<TypeId, TypeQueue>;

  void wake();
  void drop_held(const RunRules& rules, DueBatch& batch);
  enum class Source { calm, crowded, backlog };
  bool take(Source source, std::size_t most, const RunRules& rules, RunningGate& gate, DueBatch& batch);
  bool take_jobs(Source source, std::size_t most, const RunRules& rules, RunningGate& gate, DueBatch& batch);
  bool take_backlog(std::size_t most, const RunRules& rules, RunningGate& gate, DueBatch& batch);
  bool is_unasked(const BizType& type) const { return type.is_pull() && polls_.demand(type.type_id) == 0; }
  void spill(TypeQueue& queue, const BizType& type, WallTime now, DueBatch& batch);
  std::size_t keep_in_memory(TypeQueue& queue, const BizType& type, WallTime now);
  void drop_too_late(TypeQueue& queue, const BizType& type, std::size_t want, WallTime now, DueBatch& batch);
  std::size_t take_slots(const BizType& type, std::size_t want, const RunRules& rules, RunningGate& gate,
                         DueBatch& batch, Pace pace, bool one_ttr);
  bool is_crowd(const TypeQueue& queue) const { return queue.jobs.size() > crowd_ || !queue.backlog.empty(); }
  TypeId& last_of(Source source) { return last_served_[static_cast<std::size_t>(source)]; }
  Turn::iterator after(TypeId last);

  // Consumers who are busy with one batch come back for the next: so long their jobs wait in memory.
  static constexpr Duration kUnaskedStay = std::chrono::seconds(10);

  // Of one lane's backlog at a time: larger pieces save a tenth of the time and let the lanes drift apart.
  static constexpr std::size_t kBacklogPiece = 256;
  static constexpr Duration kCalmMemory = std::chrono::milliseconds(50);  // how long other types keep the helper away

  PollQueue& polls_;
  const std::size_t most_held_back_;  // of one type: a few times the largest batch
  const std::size_t crowd_;
  const Duration lookahead_;
  std::vector<Waker*> consumers_;
  mutable std::mutex mutex_;
  Turn types_;
  std::set<std::pair<Lane, Pace>> backlog_lanes_;
  std::array<TypeId, 3> last_served_{};  // by source: one must not turn the others' turns back
  unsigned turn_ = 0;                    // of the sources
  WallTime calm_until_{};                // until then the helper serves only calm types
  std::size_t size_ = 0;
};

// The type's jobs must not be claimed now: unknown, or paused.
bool is_held(const TypeCatalog& catalog, WallTime now, TypeId type);

}  // namespace tocsin

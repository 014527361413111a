// DueQueue: the due work of one engine (the stages for one database), by type. EngineShared (pipeline/engine_shared.h)
// owns it. Due work is
//  - single jobs in memory, which the timekeeper pushes when their time has come, and
//  - the backlog: lanes (a lane: the jobs of one type in one shard) whose overdue rows are not in memory and are
//    claimed from the table. The scanner and the finisher push lanes, and so does JobAdmission when it moves jobs out
//    of memory.
// JobAdmission takes the work for the claimers.
//
// Invariants: a lane is in the backlog at most once for each pace (fresh, or catch-up: rows that were found late and
// start at a rate of their own). A job that the backlog of its lane covers is claimed from the table only. The
// timekeeper keeps the number of single jobs within EngineConfig::capacity.
// Thread: any.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "admission/flow_control.h"
#include "base/mutex.h"
#include "base/waker.h"
#include "ports/biz_type.h"
#include "ports/job_store.h"

namespace tocsin {

// A lane with overdue rows that are not in memory; `span` is the range of fire_at that holds them. A lane with rows of
// both paces has two entries.
struct Backlog {
  Lane lane;
  DueSpan span;
  Pace pace = Pace::fresh;
};

class DueQueue {
 public:
  // Each call that adds work wakes these loops. REQUIRES: set before the first push.
  void set_claimers(std::vector<Waker*> claimers) { claimers_ = std::move(claimers); }

  // Jobs of a type come out in the order in which they were pushed. Exception: jobs that are due before the first job
  // of the queue go ahead of it, the oldest first.
  void push(std::span<const Candidate> jobs);
  // A lane that is in the backlog already, at this pace, gets no second entry: its span grows to hold both spans.
  void push_backlog(const Backlog& backlog);
  bool has_backlog(Lane lane, Pace pace = Pace::fresh) const;

  // Returns jobs that admission took to the head of their queues, in their order.
  void put_back(std::span<const Candidate> jobs);
  // A lane that admission or next_lane() took still counts as backlog until the claimer calls one of these three.
  void put_back(const Backlog& backlog);     // rows may be left: the lane comes after the other lanes of its type
  void pass(const Backlog& backlog);         // as put_back(); the backlog begins at backlog.span from now on, and the
                                             // scan that follows the end of the backlog finds the rows before
  void end_backlog(const Backlog& backlog);  // no unlocked row is left, or the claim failed
  // Takes another lane of the type's backlog, for a claimer whose consumers want more jobs. nullopt: none is left.
  std::optional<Backlog> next_lane(TypeId type, Pace pace);

  Waiting waiting(TypeId type) const;  // a lane that was taken does not count
  std::size_t size() const;            // number of single jobs, of all types
  std::size_t size(TypeId type) const;
  std::size_t backlog_lanes() const;  // entries of the backlog, lanes that were taken included

  struct TypeQueue {
    std::deque<Candidate> jobs;
    std::deque<Backlog> backlog;
    WallTime asked_at{};  // pull types: when admission last saw a consumer wait, or first saw jobs of the type
    bool is_empty() const { return jobs.empty() && backlog.empty(); }
  };
  using Types = std::map<TypeId, TypeQueue>;

  // The queues, locked for as long as this object exists. For JobAdmission only.
  class Locked {
   public:
    explicit Locked(DueQueue& queue) : queue_(queue), lock_(queue.mutex_) {}
    // Unchecked: the constructor has taken the lock, which the analysis does not know.
    Types& types() TOCSIN_UNCHECKED { return queue_.types_; }
    // Moves the first `n` jobs to the end of `out`.
    void take_front(TypeQueue& from, std::size_t n, std::vector<Candidate>& out) TOCSIN_UNCHECKED;
    // Returns jobs that were taken to the head of the queue.
    void return_front(TypeQueue& to, std::span<const Candidate> jobs) TOCSIN_UNCHECKED;
    // Moves the last job of the queue to `out`. Its lane becomes backlog over `span`, so a claim finds the row there.
    void spill_back(TypeQueue& from, const DueSpan& span, std::vector<Candidate>& out) TOCSIN_UNCHECKED;
    // Takes this lane of the type's backlog, with the span that it has by now. REQUIRES: `lane` is in `from.backlog`.
    Backlog take_lane(TypeQueue& from, std::deque<Backlog>::iterator lane) TOCSIN_UNCHECKED {
      return queue_.take_lane(from, lane);
    }
    // Whether the backlog of the job's lane covers the job, so that it is claimed from the table.
    bool is_in_backlog(const Candidate& job) const TOCSIN_UNCHECKED {
      const auto lane = queue_.backlog_.find({job.lane(), Pace::fresh});
      return lane != queue_.backlog_.end() && std::pair(job.fire_at, job.job_id) > lane->second.after();
    }
    bool has_backlog() const TOCSIN_UNCHECKED { return !queue_.backlog_.empty(); }
    // Moves at most `most` jobs of a type to `out`. Once no job is left, removes the type and its backlog. Returns the
    // next type.
    Types::iterator erase(Types::iterator type, std::size_t most, std::vector<Candidate>& out) TOCSIN_UNCHECKED;

   private:
    DueQueue& queue_;
    MutexLock lock_;
  };

 private:
  void wake();
  bool extend_locked(const Backlog& backlog) TOCSIN_REQUIRES(mutex_);
  Backlog take_lane(TypeQueue& from, std::deque<Backlog>::iterator lane) TOCSIN_REQUIRES(mutex_);

  std::vector<Waker*> claimers_;
  mutable Mutex mutex_;
  Types types_ TOCSIN_GUARDED_BY(mutex_);
  std::map<std::pair<Lane, Pace>, DueSpan> backlog_ TOCSIN_GUARDED_BY(mutex_);  // lanes that a claimer has taken, too
  std::size_t size_ TOCSIN_GUARDED_BY(mutex_) = 0;
};

// Whether the type's jobs must not be claimed now: it is unknown, or paused. `now`: by the database's clock.
bool is_held(const TypeCatalog& catalog, WallTime now, TypeId type);

}  // namespace tocsin

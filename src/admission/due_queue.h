// DueQueue: the due work of one engine, by type: single jobs, pushed by the timekeeper, and the backlog: lanes (the
// jobs of one type in one shard) whose overdue rows are not in memory and are claimed from the table. The scanner and
// the finisher push lanes, and so does JobAdmission when it moves jobs out of memory. JobAdmission takes the work for
// the claimers.
//
// Invariants: a lane is in the backlog at most once for each pace. A job that the backlog of its lane covers is claimed
// from the table only. The timekeeper pushes no more single jobs than EngineConfig::capacity. Thread: any.
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

// A lane with overdue rows that are not in memory. They lie within `span`. A lane with rows of both paces is
// in the queue twice.
struct Backlog {
  Lane lane;
  DueSpan span;
  Pace pace = Pace::fresh;
};

class DueQueue {
 public:
  // Woken by everything that adds work. REQUIRES: set before the first push.
  void set_claimers(std::vector<Waker*> claimers) { claimers_ = std::move(claimers); }

  // Jobs of a type come out in the order they came in, except that those due before the first go ahead of it, the
  // oldest first.
  void push(std::span<const Candidate> jobs);
  // If the lane is in the backlog already, at this pace, its span is extended to hold both.
  void push_backlog(const Backlog& backlog);
  bool has_backlog(Lane lane, Pace pace = Pace::fresh) const;

  // Jobs that admission took return to the head of their queues, in their order.
  void put_back(std::span<const Candidate> jobs);
  // A lane that admission or next_lane() took counts as backlog until the claimer calls one of these.
  void put_back(const Backlog& backlog);     // rows may be left: to be taken again, after the other lanes of its type
  void pass(const Backlog& backlog);         // the same; rows before its span are left to the scan that follows its end
  void end_backlog(const Backlog& backlog);  // no unlocked row is left, or the claim failed
  // Takes another lane of the type's backlog, for a claimer whose consumers want more jobs; nullopt: there is none.
  std::optional<Backlog> next_lane(TypeId type, Pace pace);

  Waiting waiting(TypeId type) const;  // without lanes that were taken
  std::size_t size() const;            // single jobs
  std::size_t size(TypeId type) const;
  std::size_t backlog_lanes() const;  // those taken included, once for each pace

  struct TypeQueue {
    std::deque<Candidate> jobs;
    std::deque<Backlog> backlog;
    WallTime asked_at{};  // pull: when admission last saw consumers wait, or first saw the jobs
    bool is_empty() const { return jobs.empty() && backlog.empty(); }
  };
  using Types = std::map<TypeId, TypeQueue>;

  // The queues under their lock, for admission alone.
  class Locked {
   public:
    explicit Locked(DueQueue& queue) : queue_(queue), lock_(queue.mutex_) {}
    // The constructor has taken the lock, and the analysis does not know that.
    Types& types() TOCSIN_UNCHECKED { return queue_.types_; }
    // Moves the first `n` jobs to the end of `out`.
    void take_front(TypeQueue& from, std::size_t n, std::vector<Candidate>& out) TOCSIN_UNCHECKED;
    // Puts jobs that were taken back to the head.
    void return_front(TypeQueue& to, std::span<const Candidate> jobs) TOCSIN_UNCHECKED;
    // Moves the job that came last to `out`; its lane becomes backlog over `span`, so that the job is found there.
    void spill_back(TypeQueue& from, const DueSpan& span, std::vector<Candidate>& out) TOCSIN_UNCHECKED;
    // Takes a lane of the type's backlog, with its extended span. REQUIRES: an element of `from.backlog`.
    Backlog take_lane(TypeQueue& from, std::deque<Backlog>::iterator lane) TOCSIN_UNCHECKED {
      return queue_.take_lane(from, lane);
    }
    // Whether the backlog of its lane covers the job, so that it is claimed from the table.
    bool is_in_backlog(const Candidate& job) const TOCSIN_UNCHECKED {
      const auto lane = queue_.backlog_.find({job.lane(), Pace::fresh});
      return lane != queue_.backlog_.end() && std::pair(job.fire_at, job.job_id) > lane->second.after();
    }
    bool has_backlog() const TOCSIN_UNCHECKED { return !queue_.backlog_.empty(); }
    // Moves at most `most` jobs of a type to `out`, and removes the type with its backlog when none is left. Returns
    // the type that follows.
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

// The queue of due work between timekeeper, scanner and admission, by type: single jobs from the wheel, and lanes whose
// backlog is claimed from the table. JobAdmission decides what is claimed when.
//
// Invariants: a lane is in the backlog at most once for each pace. Single jobs are bounded by KnownJobs, lanes by
// shards x types. Thread: any.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "admission/flow_control.h"
#include "base/mutex.h"
#include "base/waker.h"
#include "ports/biz_type.h"
#include "ports/job_store.h"

namespace tocsin {

// A lane with overdue rows that are not in memory; they lie within `span`.
struct Backlog {
  Lane lane;
  DueSpan span;
  Pace pace = Pace::fresh;
};

class DueQueue {
 public:
  // Woken by every push. REQUIRES: set before the first push.
  void set_consumers(std::vector<Waker*> consumers) { consumers_ = std::move(consumers); }

  // Jobs of a type come out in the order they came in; one that is older than all that wait goes first.
  void push(std::span<const Candidate> jobs);
  void push_backlog(const Backlog& backlog);  // no effect when the lane is in it already
  bool has_backlog(Lane lane, Pace pace = Pace::fresh) const;

  // Of a backlog lane that admission took: it stays in the backlog until one of these.
  void put_back(const Backlog& backlog);  // behind the other lanes of its type
  void end_backlog(const Backlog& backlog);
  // Takes another lane of the type's backlog, for consumers that want more jobs; nullopt: there is none.
  std::optional<Backlog> next_lane(TypeId type, Pace pace);

  Waiting waiting(TypeId type) const;
  std::size_t size() const;  // single jobs
  std::size_t size(TypeId type) const;
  std::size_t backlog_lanes() const;

  struct TypeQueue {
    std::deque<Candidate> jobs;
    std::deque<Backlog> backlog;
    WallTime asked_at{};  // pull: when consumers were last seen to wait
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
    // Moves the job that came last to `out`; its lane becomes backlog over `span`.
    void spill_back(TypeQueue& from, const DueSpan& span, std::vector<Candidate>& out) TOCSIN_UNCHECKED;
    // Removes a type with all it has; its jobs go to `out`.
    Types::iterator erase(Types::iterator type, std::vector<Candidate>& out) TOCSIN_UNCHECKED;

   private:
    DueQueue& queue_;
    MutexLock lock_;
  };

 private:
  void wake();

  std::vector<Waker*> consumers_;
  mutable Mutex mutex_;
  Types types_ TOCSIN_GUARDED_BY(mutex_);
  std::set<std::pair<Lane, Pace>> backlog_lanes_ TOCSIN_GUARDED_BY(mutex_);
  std::size_t size_ TOCSIN_GUARDED_BY(mutex_) = 0;
};

// The type's jobs must not be claimed now: unknown, or paused.
bool is_held(const TypeCatalog& catalog, WallTime now, TypeId type);

}  // namespace tocsin

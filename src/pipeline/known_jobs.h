// KnownJobs: the ids of all unclaimed jobs in the memory of one engine, from the scan or hint until they are claimed or
// dropped. It keeps a row from entering twice, bounds the number of jobs, and decides which hints enter (a hint: a job
// that did not wait for a scan to find it). Owned by EngineShared.
//
// Rule: while f of n entries are free, a type may hold 12 f^2 / n jobs, and one job if any entry is free. A type that
// is the only one may fill three quarters. Forty types that flood one after the other leave about n / 420 entries free
// for types that come later.
//
// Invariant: size() <= capacity. Thread: any.
#pragma once

#include <cstddef>
#include <span>
#include <unordered_map>

#include "base/mutex.h"
#include "ports/job_store.h"

namespace tocsin {

class KnownJobs {
 public:
  // Below this fill() memory is taken to have capacity for all jobs due within the lookahead, hints included.
  static constexpr double kAmple = 0.5;

  explicit KnownJobs(std::size_t capacity);

  // Adds a job that a scan has read.
  //  - already_known: the job is in memory with this time or an earlier one.
  //  - moved: the job was in memory with a later time, such as the end of a lease that was since released. The caller
  //    adds it to the time wheel again, with the earlier time.
  //  - full: memory has no capacity; the job was not added.
  enum class Added { yes, already_known, moved, full };
  Added add(JobId job, TypeId type, WallTime fire_at = {});
  // Offers a hint.
  //  - entered: the caller adds the job to the time wheel. A known job is added again, because its time may have
  //    changed; of two entries the one that is due first claims the job.
  //  - left_to_scan: not added. A scan will find the job: it is not known, it is due beyond the scan horizon
  //    (set_horizon()), and memory is at least kAmple full for its type.
  //  - full: not added, because memory has no capacity.
  //  - first_full: as full, the first time since take_refused(), while the horizon is WallTime::max(). The caller
  //    requests a scan, which adapts the lookahead.
  enum class Hint { entered, left_to_scan, full, first_full };
  Hint offer_hint(const Candidate& job);
  // Sets the scan horizon: a scan will still read every row that is due later. max(): no hint is refused for its time.
  void set_horizon(WallTime horizon);
  void raise_horizon(WallTime horizon);  // sets the horizon if this one is later
  bool take_refused();                   // whether memory was full for a hint since the last call
  void remove(JobId job);                // an unknown job is ignored
  void remove(std::span<const Candidate> jobs);
  bool contains(JobId job) const;
  std::size_t size() const;
  // How many more jobs of the type fit.
  std::size_t available(TypeId type) const;
  // How full memory is for the type, 0 to 1: 1 - available(type) / (what a type may hold in an empty memory). Jobs of
  // all types count.
  double fill(TypeId type) const;
  double highest_fill() const;  // fill() of the type with the most jobs
  std::size_t capacity() const { return capacity_; }

 private:
  void remove_locked(JobId job) TOCSIN_REQUIRES(mutex_);
  std::size_t available_locked(TypeId type) const TOCSIN_REQUIRES(mutex_);
  Added add_locked(JobId job, TypeId type, WallTime fire_at) TOCSIN_REQUIRES(mutex_);
  double fill_of(std::size_t available) const {
    return 1 - static_cast<double>(available) / static_cast<double>(alone_);
  }

  const std::size_t capacity_;
  const std::size_t alone_;  // what one type may hold while there is no other
  mutable Mutex mutex_;
  struct Known {
    TypeId type;
    WallTime fire_at;  // of its earliest entry on the wheel
  };
  std::unordered_map<JobId, Known> jobs_ TOCSIN_GUARDED_BY(mutex_);
  std::unordered_map<TypeId, std::size_t> per_type_ TOCSIN_GUARDED_BY(mutex_);
  WallTime horizon_ TOCSIN_GUARDED_BY(mutex_) = WallTime::max();
  bool has_refused_ TOCSIN_GUARDED_BY(mutex_) = false;
};

}  // namespace tocsin

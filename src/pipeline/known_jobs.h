// KnownJobs: the ids of all unclaimed jobs in memory, from the scan or hint until they are claimed or dropped. It keeps
// a row from entering twice, bounds the number of jobs, and decides which hints enter.
//
// Rule: with f of n entries free, a type may hold 12 f^2 / n jobs, and one as long as any entry is free. Alone it may
// fill three quarters; forty types that flood one after the other leave about n / 420 entries to types that come later.
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

  // already_known: with this time or an earlier one. moved: with a later time (such as the end of a lease that was
  // since released); the caller adds it to the time wheel again, for the earlier one. full: the job was not added.
  enum class Added { yes, already_known, moved, full };
  Added add(JobId job, TypeId type, WallTime fire_at = {});
  // A hint: a job that did not wait for the scan. entered: the caller adds it to the time wheel, also if it was known:
  // it may have been moved, and of two entries the one that is due first claims. left_to_scan: it is due beyond the
  // scan horizon, and its type uses kAmple of its share. full: it was not added. first_full: the same, the first since
  // take_refused() while the horizon was WallTime::max(); the caller requests a scan, which adapts the lookahead.
  enum class Hint { entered, left_to_scan, full, first_full };
  Hint offer_hint(const Candidate& job);
  // A scan will still read every row that is due later than this. max(): no hint is refused for its time.
  void set_horizon(WallTime horizon);
  void raise_horizon(WallTime horizon);  // the same, if it is later
  bool take_refused();                   // whether memory was full for a hint since the last call
  void remove(JobId job);                // an unknown job is ignored
  void remove(std::span<const Candidate> jobs);
  bool contains(JobId job) const;
  std::size_t size() const;
  // How many more jobs of the type fit.
  std::size_t available(TypeId type) const;
  // 1 - available(type) / what a type could hold if memory were empty: 0 to 1. Jobs of other types count, too.
  double fill(TypeId type) const;
  double highest_fill() const;  // of the type with the most jobs
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

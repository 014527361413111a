// ScanProgress: whether the scans of an engine keep up. The scanner notes the end of each cycle (scans that together
// read every owned shard once). Readiness checks and the heartbeat read it. Owned by EngineShared. Thread: any.
#pragma once

#include <optional>
#include <string>

#include "base/mutex.h"
#include "tocsin/clock.h"

namespace tocsin {

class ScanProgress {
 public:
  // `interval`: of the scans; `lookahead`: how far ahead they read.
  ScanProgress(Duration interval, Duration lookahead) : interval_(interval), lookahead_(lookahead) {}

  // A cycle has ended. `began`: before its first statement was sent; `ended`: when its last answer arrived.
  void note_cycle(MonoTime began, MonoTime ended) {
    MutexLock lock(mutex_);
    ended_at_ = ended;
    took_ = ended - began;
  }
  // The time since the last cycle ended; nullopt: none has.
  std::optional<Duration> age(MonoTime now) const {
    MutexLock lock(mutex_);
    return ended_at_ ? std::optional(now - *ended_at_) : std::nullopt;
  }
  // A message that says why jobs may start late although nothing fails; empty: the scans keep up with their interval.
  std::string trouble(MonoTime now) const {
    const auto ms = [](Duration time) { return std::to_string(time.count() / 1000) + " ms"; };
    MutexLock lock(mutex_);
    if (!ended_at_) return "";
    const Duration age = now - *ended_at_;
    if (age > lookahead_) return "scans are behind: the last one ended " + ms(age) + " ago";
    if (took_ <= interval_ * 3 / 2) return "";
    return "scans are behind: one takes " + ms(took_) + " where there is one every " + ms(interval_);
  }

 private:
  const Duration interval_, lookahead_;
  mutable Mutex mutex_;
  std::optional<MonoTime> ended_at_ TOCSIN_GUARDED_BY(mutex_);
  Duration took_ TOCSIN_GUARDED_BY(mutex_){0};
};

}  // namespace tocsin

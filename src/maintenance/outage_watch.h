// OutageWatch: whether a database answers, from what the threads of its Database note. It logs the beginning and the
// end of an outage, once each; of a silence in which no call failed, its end. Owned by Database.
#pragma once

#include <string>

#include "base/mutex.h"
#include "tocsin/clock.h"
#include "tocsin/error.h"

namespace tocsin {

// Thread: any.
class OutageWatch {
 public:
  // A database that has answered nothing for this long does not answer.
  static constexpr Duration kSilence = std::chrono::seconds(5);
  // `title`: of the database, for the log. REQUIRES: `clock` outlives it.
  OutageWatch(std::string title, const Clock& clock) : title_(std::move(title)), clock_(clock) {}

  void answered();
  // Housekeeping's call failed. An outage begins when no connection could be opened (Error field kUnreachable), or at
  // the first failure after kSilence.
  void failed(const Error& error);
  // It has answered, within the last kSilence, and no outage has begun since.
  bool is_answering() const;
  // A call of another thread than housekeeping's failed as unavailable. True: housekeeping should find out now whether
  // the database answers; at most once a second, and not during an outage.
  bool wants_check();

 private:
  const std::string title_;
  const Clock& clock_;
  mutable Mutex mutex_;
  bool is_outage_ TOCSIN_GUARDED_BY(mutex_) = false;
  MonoTime answered_at_ TOCSIN_GUARDED_BY(mutex_){};  // the beginning of the clock: never
  MonoTime wanted_at_ TOCSIN_GUARDED_BY(mutex_){};
};

}  // namespace tocsin

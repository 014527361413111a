// OutageWatch: decides whether a database answers, from what the threads of its Database (node/database.h, the owner)
// report. It logs the beginning and the end of an outage, once each. If the database was silent for 5 s although no
// call failed, it logs only the end.
#pragma once

#include <string>

#include "base/mutex.h"
#include "tocsin/clock.h"
#include "tocsin/error.h"

namespace tocsin {

// Thread: any.
class OutageWatch {
 public:
  // A database from which no answer has come for this long is taken as not answering. Housekeeping gets an answer at
  // least every 3 s.
  static constexpr Duration kSilence = std::chrono::seconds(5);
  // `title`: name and address of the database, for the log. REQUIRES: `clock` outlives it.
  OutageWatch(std::string title, const Clock& clock) : title_(std::move(title)), clock_(clock) {}

  // Housekeeping got an answer from the database. Ends an outage.
  void answered();
  // A call of housekeeping failed. An outage begins if no connection could be opened (Error field kUnreachable), or if
  // no answer has come for kSilence. Only Errors unavailable and in_doubt count.
  void failed(const Error& error);
  // True: the database has answered within the last kSilence, and no outage has begun since.
  bool is_answering() const;
  // Called after a call of any other thread failed as unavailable. True: the caller should have housekeeping find out
  // now whether the database answers. At most once a second, and never during an outage.
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

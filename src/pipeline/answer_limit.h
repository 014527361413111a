// AnswerLimit: the time limit of the store calls of one stage (the finisher, a claimer). A call blocks its stage, and a
// dead connection may report no error: without this limit the leases of the stage's jobs would end meanwhile. A call
// that reaches the limit ends, and its connection is closed (JobStore::answer_within). Because the database may also be
// only slow, the limit doubles with each call in a row that fails. Thread: that of the stage.
#pragma once

#include <algorithm>

#include "ports/job_store.h"

namespace tocsin {

// Whether the database has answered that it refuses values or met locks.
inline bool is_row_error(const Error& error) {
  return error.code == ErrorCode::invalid || error.code == ErrorCode::conflict;
}

// Whether one row may be the reason, so that a call for fewer rows may succeed at once. The lock of a table is none: a
// call for any row waits for it. (Locked rows are skipped.)
inline bool is_refused_row(const Error& error) { return is_row_error(error) && error.field != kLocked; }

class AnswerLimit {
 public:
  // REQUIRES: `store` outlives it.
  explicit AnswerLimit(JobStore& store) : store_(store) {}

  // Runs `call`, which makes one call of the store, and returns its result. `patience`: the limit after a success or a
  // row error; doubled for each failure in a row, up to 1024 times. A new connection takes extra time.
  template <class Call>
  auto ask(Duration patience, Call&& call) {
    constexpr int kMostDoublings = 10;
    store_.answer_within(patience * (1 << std::min(unanswered_, kMostDoublings)));
    auto reply = call();
    unanswered_ = reply || is_row_error(reply.error()) ? 0 : unanswered_ + 1;
    return reply;
  }
  // Whether the last call failed and not by a row error: no answer came, or the database was unavailable.
  bool is_unanswered() const { return unanswered_ > 0; }

 private:
  JobStore& store_;
  int unanswered_ = 0;  // calls in a row that failed, row errors apart
};

}  // namespace tocsin

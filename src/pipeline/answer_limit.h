// AnswerLimit: the time limit of the store calls of one stage. Finisher and Claimer each own one. A call blocks its
// stage, and a dead connection may report no error: without a limit the leases of the stage's jobs would end meanwhile.
// A call that reaches the limit ends, and its connection is closed (JobStore::answer_within). Because the database may
// also be only slow, the limit doubles with each call in a row that fails. Thread: owner only (that of the stage).
#pragma once

#include <algorithm>

#include "ports/job_store.h"
#include "ports/row_refusal.h"

namespace tocsin {

class AnswerLimit {
 public:
  // REQUIRES: `store` outlives it.
  explicit AnswerLimit(JobStore& store) : store_(store) {}

  // Runs `work`, which makes one call of the store, and returns its result. `patience`: the limit after a success or
  // after a row error (the database answered that it refuses a row, or met a lock). Each further failure in a row
  // doubles the limit, up to 1024 times `patience`. A new connection takes extra time.
  template <class Work>
  auto call(Duration patience, Work&& work) {
    constexpr int kMostDoublings = 10;
    store_.answer_within(patience * (1 << std::min(unanswered_, kMostDoublings)));
    auto reply = work();
    unanswered_ = reply || is_row_error(reply.error()) ? 0 : unanswered_ + 1;
    return reply;
  }
  // Whether the last call failed without a row error: no answer came, or the database was unavailable.
  bool is_unanswered() const { return unanswered_ > 0; }

 private:
  JobStore& store_;
  int unanswered_ = 0;  // calls in a row that failed, row errors apart
};

}  // namespace tocsin

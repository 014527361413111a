// AnswerLimit: bounds how long a stage waits for the answers of its store, whose session may be dead although its peer
// says nothing (ADR 0051). A database may be slow and not silent, so each try in a row gets twice the time.
// Thread: owner only.
#pragma once

#include <algorithm>

#include "ports/job_store.h"

namespace tocsin {

// The database has answered: the values or the locks of single rows may be the reason, and other rows need not wait.
inline bool is_of_rows(const Error& error) {
  return error.code == ErrorCode::invalid || error.code == ErrorCode::conflict;
}

class AnswerLimit {
 public:
  explicit AnswerLimit(JobStore& store) : store_(store) {}

  // Makes one call of the store. `patience`: how long the first try in a row may take.
  template <class Call>
  auto ask(Duration patience, Call&& call) {
    constexpr int kMostDoublings = 10;
    store_.answer_within(patience * (1 << std::min(unanswered_, kMostDoublings)));
    auto reply = call();
    unanswered_ = reply || is_of_rows(reply.error()) ? 0 : unanswered_ + 1;
    return reply;
  }
  // The last call had no answer, or the database was unavailable.
  bool is_unanswered() const { return unanswered_ > 0; }

 private:
  JobStore& store_;
  int unanswered_ = 0;  // calls in a row
};

}  // namespace tocsin

// AnswerLimit: the time limit of the store calls of one thread. A call blocks its thread, and a dead connection may
// report no error: without a limit the leases of a stage's jobs would end meanwhile, and shards or outbox entries would
// wait. A call that reaches the limit ends, and its connection is closed (JobStore::answer_within). Because the
// database may also be only slow, the limit doubles with each call in a row that fails. The finisher, the claimers, the
// shard owner and the outbox relay have them. Thread: owner only.
#pragma once

#include <algorithm>
#include <functional>

#include "ports/row_refusal.h"
#include "tocsin/clock.h"

namespace tocsin {

class AnswerLimit {
 public:
  // `store`: has answer_within(Duration). REQUIRES: it outlives this object.
  template <class Store>
  explicit AnswerLimit(Store& store) : answer_within_([&store](Duration limit) { store.answer_within(limit); }) {}

  // Runs `work`, which makes one call of the store, and returns its result. `patience`: the limit after a success or
  // after a row error (the database answered that it refuses a row, or met a lock). Each further failure in a row
  // doubles the limit, up to 1024 times `patience`. A new connection takes extra time.
  template <class Work>
  auto call(Duration patience, Work&& work) {
    constexpr int kMostDoublings = 10;
    answer_within_(patience * (1 << std::min(unanswered_, kMostDoublings)));
    auto reply = work();
    unanswered_ = reply || is_row_error(reply.error()) ? 0 : unanswered_ + 1;
    return reply;
  }
  // Whether the last call failed without a row error: no answer came, or the database was unavailable.
  bool is_unanswered() const { return unanswered_ > 0; }

 private:
  std::function<void(Duration)> answer_within_;
  int unanswered_ = 0;  // calls in a row that failed, row errors apart
};

}  // namespace tocsin

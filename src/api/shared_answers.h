// Lets many readers share one answer (ADR 0050): a page that fifty callers watch costs the database as much as one.
//
// Only requests that allow it share answers: `Cache-Control: max-age=N` with N >= 1 accepts an answer that another
// caller asked for up to N seconds before, 60 at most, or that is under way. All others are answered from the database,
// so that a caller always reads its own writes.
#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "api/router.h"

namespace tocsin {

// Thread: any.
class SharedAnswers {
 public:
  using Handler = std::function<void(const CallPtr&)>;
  using SteadyTime = std::chrono::steady_clock::time_point;
  // `now`: for tests.
  explicit SharedAnswers(std::function<SteadyTime()> now = std::chrono::steady_clock::now);

  // Returns a handler that calls `handler` only if the last answer for this target is too old for the caller, and once
  // for all calls that wait. Answers other than 200 and those of over 512 KiB are given to the waiting calls and not
  // kept. REQUIRES: the answer depends on nothing but the target and Call::may_manage.
  Handler share(Handler handler) const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace tocsin

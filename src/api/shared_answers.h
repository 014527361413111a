// SharedAnswers: answers many equal GET requests with one answer (ADR 0050), so that a page open in fifty browsers
// costs the database as much as one. Api wraps the handlers of GET /v1/... with it, but for /v1/me.
//
// Only requests that allow it share answers: `Cache-Control: max-age=N` with N >= 1 accepts an answer to a request that
// came up to N seconds before, 60 at most, or that is not answered yet. Others are answered by the handler, so that a
// caller without max-age reads its own writes.
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

  // Returns a handler that calls `handler` only if the last answer for this target and may_manage is too old for the
  // caller, and once for all calls that wait, of which each gets this answer. Answers other than 200 and those of over
  // 512 KiB are not kept. At most 128 entries are kept or awaited, over all handlers; the oldest kept one goes first,
  // and while all are awaited further targets share nothing. The returned handler may outlive this object. REQUIRES:
  // the answer depends on nothing but the target and Call::may_manage.
  Handler share(Handler handler) const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace tocsin

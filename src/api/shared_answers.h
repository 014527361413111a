// SharedAnswers: a cache of answers for a few seconds with request collapsing: many equal GET requests get one answer
// (ADR 0050), so that a page open in fifty browsers costs the database as much as one. Api wraps the handlers of GET
// /v1/... with it, but for /v1/me.
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

  // Returns a handler that answers a call in one of three ways. If a kept answer is young enough for the caller, the
  // call gets it. If an equal request is under way, the call waits for its answer. Else `handler` is called. Requests
  // are equal if they have the same target and Call::may_manage (the caller may see values that only admins may see).
  //
  // Answers other than 200 and those of over 512 KiB are not kept. At most 128 entries are kept or awaited, over all
  // handlers; the oldest kept one is dropped first, and while all are awaited further targets share nothing. The
  // returned handler may outlive this object. REQUIRES: the answer depends only on the target and may_manage.
  Handler share(Handler handler) const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace tocsin

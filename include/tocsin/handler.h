// How an attempt of a job is run: Handler, the interface of all kinds, and CppHandler, a function of your program.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "tocsin/job.h"
#include "tocsin/start_pool.h"

namespace tocsin {

// Runs the attempts of one type; the engines call it for each job that they have claimed.
// Thread: start() on the threads of the runners, one per database, so several calls may run at once; the other
// functions any. `finish` must be called exactly once per start(), from any thread, also within start().
class Handler {
 public:
  using Finish = std::function<void(Outcome)>;
  virtual ~Handler() = default;

  // Begins the attempt and returns without waiting for it. Must not block and must not throw. `job` lives until
  // `finish` and its copies are destroyed. The attempt should begin by job.start_by, or end as Outcome::not_started. It
  // should end by job.lease_deadline: after that another node may run the job again.
  virtual void start(const ClaimedJob& job, Finish finish) = 0;

  // The pool whose slots bound its attempts, possibly shared with other types. Null: any number may run at once.
  virtual std::shared_ptr<const StartPool> pool() const { return nullptr; }

  // Why attempts of the type do not start now, or fewer than usual, for callers that ask why a job waits: "its endpoint
  // http://... does not answer". Empty when all is well.
  virtual std::string hold_reason() const { return {}; }
};

// An in-process handler, registered with Node::handle(). Called on worker threads, for several jobs at once. It may
// block up to the ttr of its type: after that the job runs again. An exception counts as Outcome::retry with its
// message.
using CppHandler = std::function<Outcome(const Job&)>;

}  // namespace tocsin

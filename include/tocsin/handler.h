// How an attempt of a job is run: Handler, the interface of all kinds, and CppHandler, a function of your program.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "tocsin/job.h"
#include "tocsin/start_pool.h"

namespace tocsin {

// Runs attempts of one kind of delivery.
// Thread: start() from the threads of the runners, one per database; `finish` may be called from any thread, exactly
// once per start.
class Handler {
 public:
  using Finish = std::function<void(Outcome)>;
  virtual ~Handler() = default;

  // Begins the attempt and returns without waiting for it. Must not block and must not throw. `job` lives as long as
  // `finish` does. The attempt should end by job.lease_deadline: after it another node may run the job again.
  // It should begin by job.start_by, or end as not_started.
  virtual void start(const ClaimedJob& job, Finish finish) = 0;

  // The pool whose slots bound its attempts, possibly shared with other types. Null: any number may run at once.
  virtual std::shared_ptr<const StartPool> pool() const { return nullptr; }

  // Why the pool has less capacity than usual, human-readable: "its endpoint http://... does not answer". Empty when
  // all is well.
  virtual std::string hold_reason() const { return {}; }
};

// An in-process handler, registered with Node::handle(). Called on a worker thread; may block up to the ttr of its
// type. An exception counts as Outcome::retry with its message.
using CppHandler = std::function<Outcome(const Job&)>;

}  // namespace tocsin

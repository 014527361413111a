// CppKind: the handler kind `cpp`: jobs handled by C++ functions of the program that links libtocsin. Node::handle
// (tocsin/node.h) registers the functions in CppHandlers, and CppRunner runs them on worker threads. CppKind is owned
// by HandlerRegistry.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "base/mutex.h"
#include "base/worker_pool.h"
#include "delivery/handler_kind.h"

namespace tocsin {

class InFlight;

// The registered functions, by name of the type. Thread: any.
class CppHandlers {
 public:
  // False: the type has a function already, which stays.
  bool add(const std::string& type_name, CppHandler handler);
  // Null: no function; the node must not claim jobs of this type.
  std::shared_ptr<const CppHandler> find(const std::string& type_name) const;

 private:
  mutable Mutex mutex_;
  std::map<std::string, std::shared_ptr<const CppHandler>> by_type_ TOCSIN_GUARDED_BY(mutex_);
};

// Runs attempts on a worker pool, where each type has a queue of its own. As long as the pool has spare threads, a type
// whose function is slow or blocks for ever delays no other type.
//  - A function that throws: the attempt is a retry with the exception's message.
//  - A function that overruns its lease is not interrupted; its outcome comes late, and the store refuses it.
//  - An attempt whose queue is full, or that no thread begins in time, ends as not started: the job is pending again,
//    and the attempt is not counted. In time means by ClaimedJob::start_by.
// Thread: stop and destructor owner only; the rest any.
class CppRunner {
 public:
  CppRunner(WorkerPool& workers, const Clock& clock);
  ~CppRunner();  // stop()

  // Running attempts end as a retry "shutting down"; what their functions return later is dropped. Attempts that have
  // not begun, and later ones, end as not started. REQUIRES: the pool was stopped before, with a grace period for the
  // functions.
  void stop();

  // REQUIRES: the runner outlives the handler's start() calls.
  std::shared_ptr<Handler> handler_for(std::shared_ptr<const CppHandler> function);

 private:
  class FunctionHandler;

  WorkerPool& workers_;
  const Clock& clock_;
  const std::shared_ptr<InFlight> in_flight_;  // shared with functions that overrun, which may outlive the runner
};

// The kind in the node's HandlerRegistry: the registered functions, on worker threads of its own.
class CppKind final : public HandlerKind {
 public:
  // `threads`: functions that run at a time; up to kSpareThreads more may. `queue`: attempts of one type that may wait
  // for a thread. REQUIRES: `functions` outlives the kind. `clock` lives as long as the process, because a function
  // that overruns may outlive its node.
  CppKind(const CppHandlers& functions, int threads, std::size_t queue, const Clock& clock)
      : functions_(functions), workers_(threads, queue, kSpareThreads), runner_(workers_, clock) {}

  std::string name() const override { return "cpp"; }
  // A node without the function may still register the type.
  std::optional<Error> check(const BizType& type) const override { return check_bare(type); }
  std::shared_ptr<Handler> make(const BizType& type) override;  // null: no function is registered for the type
  void stop(Duration grace) override;

 private:
  // Threads that are added while all `threads` are busy, one for each type that has no function running.
  static constexpr int kSpareThreads = 64;

  const CppHandlers& functions_;
  WorkerPool workers_;
  CppRunner runner_;
};

}  // namespace tocsin

// OutboxWaiter: lets requests wait until the outbox of one database has no entry of the jobs that they are about (ADR
// 0022). A SQL caller that has committed a job here, for a shard of another database, expects that a request finds it;
// until a node has relayed the entry, neither database has the job. Requests that wait at the same time share a
// statement. An entry that is found is announced to all nodes, and looked for again every 20 ms.
//
// Each database of a node with several has one, with a thread and a session.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "base/mutex.h"
#include "base/worker_thread.h"
#include "ports/outbox_store.h"
#include "postgres/session.h"

namespace tocsin {

// Its session connects at the first call and waits two seconds at most for an answer.
std::unique_ptr<OutboxLookup> outbox_lookup(SessionConfig session);

// Thread: push any; the rest owner only.
class OutboxWaiter {
 public:
  static constexpr Duration kPatience = std::chrono::seconds(2);
  // False: no entry waits, or the database does not answer. True: an entry still waits after kPatience, or at the stop.
  using Done = std::function<void(bool is_waiting)>;

  // `failed`: called with each Error of the database, on the waiter's thread.
  OutboxWaiter(std::unique_ptr<OutboxLookup> lookup, const Clock& clock, std::function<void(const Error&)> failed);
  ~OutboxWaiter() { stop(); }

  void start();
  // `done` is called once, on the waiter's thread; must not block or throw. False: 20,000 requests wait already, or it
  // has stopped; `done` will not be called.
  bool push(std::vector<EntryQuery> queries, Done done);
  void stop();  // answers all that wait. May be called again

  // One look for all that wait, for tests. `is_last`: answers all. REQUIRES: not started.
  void step(bool is_last = false);

 private:
  struct Request {
    std::vector<EntryQuery> queries;  // those whose entries may still wait
    Done done;
    MonoTime until;
  };

  void run();
  // Answers those whose entries have gone, and returns the others.
  std::vector<Request> look(std::vector<Request> requests);

  const std::unique_ptr<OutboxLookup> lookup_;
  const Clock& clock_;
  const std::function<void(const Error&)> failed_;
  std::vector<Request> held_;  // their entries were there at the last look
  Mutex mutex_;
  std::vector<Request> new_ TOCSIN_GUARDED_BY(mutex_);
  WorkerThread worker_;
};

}  // namespace tocsin

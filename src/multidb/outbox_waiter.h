// OutboxWaiter: lets requests wait until the outbox of one database has no entry of the jobs that they are about (ADR
// 0022). A SQL caller that has committed a job here, for a shard of another database, expects that a request finds it;
// until a node has relayed the entry, neither database has the job. Requests that arrive together share a statement.
// An entry that is found is announced to the relays of all nodes, and looked for again every 20 ms.
//
// Each database of a node with several has one, with a thread and a session: waiting requests would block the threads
// of a RequestPool.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/mutex.h"
#include "base/worker_thread.h"
#include "ports/outbox_store.h"
#include "postgres/session.h"

namespace tocsin {

// Its session connects at the first call. It waits two seconds at most for a connection or an answer, and tries twice.
std::unique_ptr<OutboxLookup> outbox_lookup(SessionConfig session);

// Thread: push any; the rest owner only.
class OutboxWaiter {
 public:
  static constexpr Duration kPatience = std::chrono::seconds(2);
  static constexpr std::size_t kMostQueries = 100'000;  // that may wait; others are refused
  enum class Answer {
    gone,       // no entry waits
    waits,      // an entry still waits after kPatience, or at the stop
    not_asked,  // the database is known not to answer
    unknown,    // the lookup failed
  };
  using Done = std::function<void(Answer)>;

  // Called on the waiter's thread; must not block.
  struct Hooks {
    std::function<bool()> is_answering;        // false: the database is known not to answer, and is not asked
    std::function<void(const Error&)> failed;  // an Error of the database
  };
  OutboxWaiter(std::unique_ptr<OutboxLookup> lookup, const Clock& clock, Hooks hooks);
  ~OutboxWaiter() { stop(); }

  void start();
  // `done` is called once, on the waiter's thread; must not block or throw. False: too many wait, or it has stopped;
  // `done` will not be called.
  bool push(std::vector<EntryQuery> queries, Done done);
  void stop();  // answers all that wait. May be called again

  // One step of the thread, for tests. `is_last`: answers all. REQUIRES: not started.
  void step(bool is_last = false);

 private:
  struct Request {
    std::vector<EntryQuery> queries;  // those whose entries may still wait
    std::size_t size;                 // how many there were at first
    Done done;
    MonoTime until;
  };

  void run();
  // Answers the requests whose entries are gone, and all when the lookup fails; returns the others.
  std::vector<Request> settle(std::vector<Request> requests);
  // The same for requests that share a lookup. False: it failed.
  bool settle_together(std::span<Request> requests, std::vector<Request>& rest);
  Result<std::vector<bool>> look_up(const std::vector<EntryQuery>& queries);
  void reply(Request& request, Answer answer);

  const std::unique_ptr<OutboxLookup> lookup_;
  const Clock& clock_;
  const Hooks hooks_;
  // Of the thread: requests whose entries were there at the last look, whether one was found since the last
  // announcement, and the time of the next look and announcement.
  std::vector<Request> held_;
  bool has_unannounced_ = false;
  MonoTime next_round_{};
  Mutex mutex_;
  std::vector<Request> new_ TOCSIN_GUARDED_BY(mutex_);
  std::size_t waiting_ TOCSIN_GUARDED_BY(mutex_) = 0;  // queries of all requests that are not answered
  WorkerThread worker_;
};

}  // namespace tocsin

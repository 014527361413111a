// OutboxWaiter: lets requests wait until the outbox of one database has no entry of their jobs (ADR 0022). A SQL caller
// may insert a job into the outbox of this database, because its shard is in another. It expects that its next request
// finds the job, but until a node has relayed the entry, the job is in neither database. Requests that arrive together
// share a statement. If an entry is found, the waiter announces it to the relays of all nodes, and looks again every 20
// ms.
//
// It also tells which shards live in the database, for requests that look for a job where it may be no more (ADR 0021).
//
// Database (node/database.h) has one if the node has several databases. NodeBackend::after_outboxes() calls push() for
// all databases that answer, and check_homes() (node/shard_homes.h) calls ask_shards(). It has its own thread and
// session, because waiting requests would block the threads of a RequestPool (service/request_pool.h).
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

// Its session connects at the first call. Each wait, for a connection or an answer, takes at most two seconds. A lookup
// whose connection breaks is tried once more.
std::unique_ptr<OutboxLookup> outbox_lookup(SessionConfig session);

// Thread: push and ask_shards any; the rest owner only (Database's).
class OutboxWaiter {
 public:
  static constexpr Duration kPatience = std::chrono::seconds(2);
  static constexpr std::size_t kMostQueries = 100'000;  // queries that may wait; push() refuses more
  enum class Answer {
    gone,       // no entry waits
    waits,      // an entry still waits after kPatience, or at stop()
    not_asked,  // hooks.is_answering() was false: the database is known not to answer
    unknown,    // the lookup failed
  };
  using Done = std::function<void(Answer)>;
  using ShardsDone = std::function<void(Result<ShardsHere>)>;

  // Called on the waiter's thread; they must not block.
  struct Hooks {
    std::function<bool()> is_answering;        // false: the database is known not to answer, and is not asked
    std::function<void(const Error&)> failed;  // an Error of the database
  };
  OutboxWaiter(std::unique_ptr<OutboxLookup> lookup, const Clock& clock, Hooks hooks);
  ~OutboxWaiter() { stop(); }

  void start();
  // `done` is called once, on the waiter's thread; it must not block or throw. False: too many queries wait, or the
  // waiter has stopped; `done` is not called.
  bool push(std::vector<EntryQuery> queries, Done done);
  // `done` is called once, on the waiter's thread, with OutboxLookup::shards_here() as of a time after this call; it
  // must not block or throw. Error unavailable without a call to the database if it is known not to answer. False: as
  // of push().
  bool ask_shards(ShardsDone done);
  void stop();  // answers all waiting requests; may be called again

  // One step of the thread, for tests. `is_last`: answers all requests. REQUIRES: not started.
  void step(bool is_last = false);

 private:
  struct Request {
    std::vector<EntryQuery> queries;  // entries that may still wait
    std::size_t size;                 // number of queries at push()
    Done done;
    MonoTime until;
  };

  void run();
  // Answers the requests whose entries are gone; if the lookup fails, answers all. Returns the others.
  std::vector<Request> settle(std::vector<Request> requests);
  // settle() for requests that share a lookup; adds requests that still wait to `rest`. False: the lookup failed.
  bool settle_together(std::span<Request> requests, std::vector<Request>& rest);
  Result<std::vector<bool>> look_up(const std::vector<EntryQuery>& queries);
  Result<ShardsHere> look_for_shards();
  void reply(Request& request, Answer answer);

  const std::unique_ptr<OutboxLookup> lookup_;
  const Clock& clock_;
  const Hooks hooks_;
  // Used by the thread only. held_: requests whose entries were there at the last look. has_unannounced_: such an entry
  // was found since the last announcement. next_round_: time of the next look and announcement.
  std::vector<Request> held_;
  bool has_unannounced_ = false;
  MonoTime next_round_{};
  Mutex mutex_;
  std::vector<Request> new_ TOCSIN_GUARDED_BY(mutex_);
  std::vector<ShardsDone> shard_questions_ TOCSIN_GUARDED_BY(mutex_);
  // Number of queries in all requests without an answer.
  std::size_t waiting_ TOCSIN_GUARDED_BY(mutex_) = 0;
  WorkerThread worker_;
};

}  // namespace tocsin

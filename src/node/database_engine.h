// DatabaseEngine: runs the engine of one database on this node. Each stage of the engine gets a thread, each stage that
// calls the database a connection of its own, and one more thread receives the database's notifications. Database (of
// src/node) owns one: it calls connect() if the database answers, start(), and at the end stop().
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "base/loop_thread.h"
#include "base/mutex.h"
#include "base/worker_thread.h"
#include "multidb/outcome_router.h"
#include "pipeline/engine.h"
#include "postgres/pg_job_store.h"
#include "postgres/pg_listener.h"

namespace tocsin {

struct DatabaseEngineConfig {
  SessionConfig session;  // of every connection
  EngineConfig engine;
  int claimers = 2;       // primary and secondary ones; a priority claimer is added
  OtherDatabases others;  // of the node; the outcome of a job whose shard has moved there is written there
  // Called on the listener's thread when the outbox has new entries. Empty: there is no outbox.
  std::function<void()> on_outbox;
  LoopThread::OnStep on_step;  // called on a stage's thread after each of its steps; not empty
};

// Its many data members are the parts that it owns: sessions, stores, the engine, threads.
// Thread: any for engine(), owns(), most_stuck() and is_listening(); the rest owner only.
class DatabaseEngine {
 public:
  // `find_handler`: called on the runner's thread. `polls`: the waiting consumers of the whole node. on_types_changed
  // and on_members_changed are called on the listener's thread after such a notification, and after each connect,
  // because notifications may have been lost before. REQUIRES: `clock` and `events` outlive it.
  DatabaseEngine(DatabaseEngineConfig config, const Clock& clock, EventSink& events, HandlerFinder find_handler,
                 std::shared_ptr<PollQueue> polls, std::function<void()> on_types_changed,
                 std::function<void()> on_members_changed);
  ~DatabaseEngine();  // stop(0), which abandons nothing

  // Connects every stage, and executes its statements once so that they are planned. Error: the first that failed.
  Status connect();
  // Starts the threads. A stage that is not connected connects at its first call.
  void start();

  // Drains: claims no more, and waits up to `grace` for running attempts. If any are left then, calls `abandon`, which
  // must make every handler end its attempts, and waits up to 4 s more. Writes the outcomes and ends the threads, each
  // after its current step. False: not all outcomes were written in time; those jobs become due again when their leases
  // end. A second call does nothing and returns true.
  bool stop(Duration grace, const std::function<void()>& abandon);

  Engine& engine() { return engine_; }
  const Engine& engine() const { return engine_; }
  bool owns(Shard shard) const;  // this node scans the shard, in this database
  // The stage whose current step has taken the longest, and for how long; "" and 0 when none is inside a step.
  std::pair<const char*, Duration> most_stuck() const;
  // Whether the database's notifications arrive.
  bool is_listening() const { return engine_.shared().membership.is_listening(); }

 private:
  PgJobStore& new_store();  // with a session of its own
  JobStore& new_finisher_store();
  EngineStores make_stores(int claimers);
  void listen();  // the listener's thread
  // Waits until no claimed job is left. False: the deadline has passed.
  bool drained_by(MonoTime deadline);
  void note_step();  // on a stage's thread, while stopping: wakes drained_by()

  const DatabaseEngineConfig config_;
  const Clock& clock_;
  EventSink& events_;
  const std::function<void()> on_types_changed_;
  const std::function<void()> on_members_changed_;
  std::deque<Session> sessions_;
  std::deque<PgJobStore> stores_;
  std::optional<OutcomeRouter> outcomes_;  // the finisher's store, if the node has other databases
  Engine engine_;
  std::vector<std::unique_ptr<LoopThread>> loops_;
  PgListener notifications_;
  WorkerThread listener_;
  std::atomic<bool> is_stopping_{false};
  Mutex mutex_;      // for stepped_ only; guards no data
  CondVar stepped_;  // notified after each step while stopping
};

}  // namespace tocsin

// DatabaseEngine: runs the engine of one database on this node. The engine is a set of stages (scanner, claimers,
// runner, finisher, ...), each a step() without waits; here each stage gets a thread, and each stage that calls the
// database a connection. One more thread receives the database's notifications. Owned by Database (node/database.h),
// which calls connect() if the database answers, then start(), and stop() at the end.
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
  int claimers = 2;       // threads that claim jobs of all types; one for types with few due jobs is added
  OtherDatabases others;  // the node's other databases: outcomes of jobs whose shards have moved are written there
  // Called on the listener's thread when the outbox (jobs that SQL callers created here for shards of other databases)
  // has new entries. Empty: the node has a single database.
  std::function<void()> on_outbox;
  LoopThread::OnStep on_step;  // called on a stage's thread after each of its steps; not empty
};

// Its many data members are the parts that it owns: sessions, stores, the engine, threads.
// Thread: any for engine(), owns(), most_stuck() and is_listening(); the rest owner only (the thread that starts and
// stops the node).
class DatabaseEngine {
 public:
  // `find_handler`: returns the handler of a type; called on the runner's thread. `polls`: the waiting consumers of the
  // whole node. `on_types_changed`, `on_members_changed`: called on the listener's thread after such a notification,
  // and after each connect, because notifications may have been lost before it. REQUIRES: `clock` and `events` outlive
  // it.
  DatabaseEngine(DatabaseEngineConfig config, const Clock& clock, EventSink& events, HandlerFinder find_handler,
                 std::shared_ptr<PollQueue> polls, std::function<void()> on_types_changed,
                 std::function<void()> on_members_changed);
  ~DatabaseEngine();  // stop(0), which abandons nothing

  // Connects every stage and executes its statements once, so that they are planned. Error: of the first call that
  // failed.
  Status connect();
  // Starts the threads. A stage that is not connected connects in its first database call.
  void start();

  // Ends the engine; it claims no more from now on.
  // - Waits up to `grace` for running attempts. If some still run, calls `abandon`, which must make every handler end
  //   its attempts, and waits 2 s more.
  // - Ends the claimers, waits up to 2 s until their last claims are released, and ends the other threads. Each thread
  //   ends after its current step.
  //
  // False: not all outcomes were written in time; those jobs become due again when their leases end. A second call does
  // nothing and returns true.
  bool stop(Duration grace, const std::function<void()>& abandon);

  Engine& engine() { return engine_; }
  const Engine& engine() const { return engine_; }
  bool owns(Shard shard) const;  // this node scans the shard, in this database
  // The stage whose current step has taken the longest, with the duration so far; "" and 0 if no stage is inside a
  // step.
  std::pair<const char*, Duration> most_stuck() const;
  // Whether notifications of the database arrive; if not, jobs created elsewhere wait for the next scan (a second).
  bool is_listening() const { return engine_.shared().membership.is_listening(); }

 private:
  PgJobStore& new_store();  // with a session of its own
  JobStore& new_finisher_store();
  EngineStores make_stores(int claimers);
  void listen();  // the listener's thread
  // Waits until this node has no claimed job of this database. False: the deadline has passed.
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

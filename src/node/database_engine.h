// The engine of one database on this node, with its threads and connections: one thread per stage, one for
// notifications.
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
  SessionConfig session;
  EngineConfig engine;
  int claimers = 2;                 // and one more, the priority claimer
  OtherDatabases others;            // where shards may move to, with their jobs' outcomes
  std::function<void()> on_outbox;  // the outbox has new entries; empty: there is no outbox
  LoopThread::OnStep on_step;
};

// The data members are the parts of an engine that this class owns: sessions, stores, stages, threads.
// Thread: owner only, except engine() and owns() (any).
class DatabaseEngine {
 public:
  // `polls`: the waiting consumers of the whole node. The callbacks run on the listener's thread, after a notification
  // and whenever notifications may have been lost.
  DatabaseEngine(DatabaseEngineConfig config, const Clock& clock, EventSink& events, HandlerFinder find_handler,
                 std::shared_ptr<PollQueue> polls, std::function<void()> on_types_changed,
                 std::function<void()> on_members_changed);
  ~DatabaseEngine();

  // Connects every stage, and executes its statements once so that they are planned. Error: the first that failed.
  Status connect();
  void start();

  // Drains: claims no more, and waits up to `grace` for running handlers. If any are left then, calls `abandon`, which
  // must end every handler in flight. Writes all outcomes and ends the threads. False: some claimed jobs could not be
  // released; they become due again when their leases end.
  bool stop(Duration grace, const std::function<void()>& abandon);

  Engine& engine() { return engine_; }
  const Engine& engine() const { return engine_; }
  bool owns(Shard shard) const;
  // The stage that has been inside one step the longest, and for how long; "" and 0 when none is inside a step.
  std::pair<const char*, Duration> most_stuck() const;
  bool is_listening() const { return engine_.shared().is_listening; }

 private:
  PgJobStore& new_store();
  JobStore& new_finisher_store();
  EngineStores make_stores(int claimers);
  void listen();
  // Waits until no claimed job is left. False: the deadline has passed.
  bool drained_by(MonoTime deadline);
  void note_step();

  const DatabaseEngineConfig config_;
  const Clock& clock_;
  EventSink& events_;
  const std::function<void()> on_types_changed_;
  const std::function<void()> on_members_changed_;
  std::deque<Session> sessions_;
  std::deque<PgJobStore> stores_;
  std::optional<OutcomeRouter> outcomes_;  // where there are others
  Engine engine_;
  std::vector<std::unique_ptr<LoopThread>> loops_;
  PgListener notifications_;
  WorkerThread listener_;
  std::atomic<bool> is_stopping_{false};
  Mutex mutex_;  // of stepped_; guards no data
  CondVar stepped_;
};

}  // namespace tocsin

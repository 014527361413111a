// Database: one database of this node, with its engine, its housekeeping, and the threads that execute requests in it.
// The node makes one per database, and NodeBackend sends requests to it.
//
// A database other than the control database may be down when the node starts, and another database may answer at any
// address. Until the right one has answered, its engine scans nothing and takes no job, and unavailable_reason() says
// why; housekeeping repeats the check until it passes.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "api/backend.h"
#include "base/assert.h"
#include "base/mutex.h"
#include "maintenance/database_events.h"
#include "maintenance/housekeeping.h"
#include "metrics/metrics.h"
#include "multidb/outbox_waiter.h"
#include "node/database_engine.h"
#include "service/coalescer.h"
#include "service/hint_sender.h"
#include "service/locked_row_retries.h"
#include "service/request_batches.h"
#include "service/request_pool.h"

namespace tocsin {

struct DatabaseConfig {
  DatabaseId database_id = 0;
  std::string name;              // as registered
  std::string address;           // host, port and database
  bool is_only_database = true;  // the only database of the node
  bool is_answering = true;      // it answered at the start
  SessionConfig session;         // of all but the engine's sessions
  DatabaseEngineConfig engine;
  int shards = 0;                          // of the installation
  int db_pool = 4;                         // threads of post()
  std::map<std::string, int> retain_days;  // days for which history is kept, by final status
  NodeId node_id = 0;                      // of this node
};

// Its many data members are its state, and its parts with their threads. Thread: any; the constructor, start,
// stop_engine, stop and the destructor owner only.
class Database {
 public:
  struct Hooks {
    HandlerFinder find_handler;  // called on the engine's runner thread
    // The next two are called by start() and on the housekeeping thread. `check`: Error invalid: another database
    // answers than the registered one. `reload_types`: reads the types of the control database, or mirrors them into
    // this one.
    std::function<Status()> check;
    std::function<Status(Database&, TypeStore&)> reload_types;
    // Called on the listener's thread, for the control database only: members or map have changed, or may have.
    std::function<void()> members_changed;
  };
  // `polls`: the waiting consumers of the whole node. REQUIRES: `clock` and `metrics` outlive it.
  Database(DatabaseConfig config, const Clock& clock, Metrics& metrics, std::shared_ptr<PollQueue> polls, Hooks hooks);
  ~Database();

  // Starts housekeeping and engine. Error, for the control database only: it does not answer, or another one does.
  Status start();
  // Stops scanning and claiming. Then stop_engine() ends the engine: it waits up to `grace` for running attempts, calls
  // `abandon`, which must end them, if any is left, and writes the outcomes. False: not all were written in time.
  void begin_drain() { engine_.engine().begin_drain(); }
  bool stop_engine(Duration grace, const std::function<void()>& abandon) { return engine_.stop(grace, abandon); }
  void stop();  // answers accepted requests first. Call after stop_engine(): otherwise the engine gets no grace

  DatabaseId database_id() const { return config_.database_id; }
  bool is_control() const { return config_.database_id == 0; }
  const std::string& name() const { return config_.name; }
  std::string title() const { return config_.name + " (" + config_.address + ")"; }
  DatabaseEngine& engine() { return engine_; }
  const DatabaseEngine& engine() const { return engine_; }
  const EngineShared& shared() const { return engine_.engine().shared(); }

  // Why the database cannot be used: it was not checked yet, or another one answers. nullopt: it can be used, but may
  // not answer at the moment.
  std::optional<Error> unavailable_reason() const;
  // It can be used, and answers (OutageWatch).
  bool is_answering() const;
  // `mine`: this node's shards in this database, scanned as soon as it may be used. `all`: all shards in it.
  void set_shards(std::vector<Shard> mine, std::vector<Shard> all);
  std::size_t shards() const;  // how many of this node's
  // Numbers of jobs by type, read every 10 s; for the metrics.
  std::vector<TypeState> type_states() const {
    MutexLock lock(mutex_);
    return type_states_;
  }

  // Whether mirror() has written the type here since the last failure or new connection; the control database: always.
  bool has_type(TypeId type) const;
  // Writes the types of `catalog` that differ from those written before through `store`, a store of this database. Not
  // for the control database. Error: of the store; nothing counts as written.
  Status mirror(TypeStore& store, const TypeCatalog& catalog);
  // Number of history tables that are past their retention by the database's clock alone. They are kept until a second
  // source of time agrees.
  std::int64_t withheld_history() const { return withheld_history_; }
  void reload_types() { housekeeping_.reload_types(); }

  // Requests that arrive together share statements and commits; `done` is called on a thread of this database. False:
  // the queue is full, `done` will not be called.
  bool create(NewJob job, std::function<void(Result<CreateReply>)> done);
  // `is_retry`: the request was answered as locked before. It bypasses the queue of first attempts, and delays none.
  bool change(ChangeItem item, bool is_retry);
  bool read(ReadItem item) { return reads_.push(std::move(item)); }
  bool write_lease(LeaseItem item) { return leases_.push(std::move(item)); }
  // As OutboxWaiter::push(). REQUIRES: not the only database of the node.
  bool await_outbox(std::vector<EntryQuery> queries, OutboxWaiter::Done done) {
    TOCSIN_ASSERT(outbox_waiter_);
    return outbox_waiter_->push(std::move(queries), std::move(done));
  }
  // Answers what waits for the outbox. Call for all databases before stop() of the first: requests that waited are sent
  // to another database then.
  void stop_outbox_waiter() {
    if (outbox_waiter_) outbox_waiter_->stop();
  }
  // Runs `work` on a database thread; false: the queue is full. post: writes and short reads; post_read: slow reads,
  // two at a time, at most 5 s per statement; post_waiting: writes that wait for locks of other transactions, four at a
  // time. None waits for another.
  bool post(std::function<void(Stores&)> work) { return pool_.post(std::move(work)); }
  bool post_read(std::function<void(Stores&)> work) { return readers_.post(std::move(work)); }
  bool post_waiting(std::function<void(Stores&)> work) { return lock_waiters_.post(std::move(work)); }
  // Passes a hint to this node's engine if it owns the shard, else to the shard's owner. Jobs due later than the
  // lookahead and a second are left to the scan.
  void hint(const Candidate& job);

 private:
  using Versions = std::map<TypeId, WallTime>;

  Housekeeping::Callbacks callbacks(Hooks hooks);
  void note_failure(const Error& error);
  void open();                   // after a check that passed: scans, and takes requests
  void close(const Error& why);  // another database answers

  const DatabaseConfig config_;
  const Clock& clock_;
  ReportBuffer reports_;
  OutageWatch watch_;
  DatabaseEvents events_;
  std::atomic<std::int64_t> withheld_history_{0};
  mutable Mutex mutex_;
  bool is_open_ TOCSIN_GUARDED_BY(mutex_) = false;
  bool is_refused_ TOCSIN_GUARDED_BY(mutex_) = false;  // another one answers at its address
  Error trouble_ TOCSIN_GUARDED_BY(mutex_){ErrorCode::unavailable, "has not answered yet", ""};
  std::vector<Shard> mine_ TOCSIN_GUARDED_BY(mutex_), all_ TOCSIN_GUARDED_BY(mutex_);
  Versions mirrored_ TOCSIN_GUARDED_BY(mutex_);
  std::vector<TypeState> type_states_ TOCSIN_GUARDED_BY(mutex_);
  // From here on members have threads.
  Housekeeping housekeeping_;
  DatabaseEngine engine_;
  RequestPool pool_, readers_, lock_waiters_;
  std::optional<OutboxWaiter> outbox_waiter_;  // with several databases
  // Declared before those that push to them, so destroyed after them.
  LockedRowRetries<CreateItem> held_keys_;
  LockedRowRetries<ChangeItem> locked_jobs_;
  LockedRowRetries<LeaseItem> locked_leases_;
  Coalescer<CreateItem> creates_, keyed_creates_;
  Coalescer<ChangeItem> changes_;
  Coalescer<LeaseItem> leases_;
  Coalescer<ReadItem> reads_;
  HintSender hints_;
};

}  // namespace tocsin

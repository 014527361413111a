// Database: one of the PostgreSQL databases that this node uses. It owns the engine (the stages that fire the jobs of
// this database), the housekeeping thread, and the threads that execute requests. The node makes one per database
// (node_parts.cc); NodeBackend sends requests to it.
//
// Database 0, the control database, must answer when the node starts; the others may be down. An address may lead to
// another database than the registered one. So the housekeeping thread checks the database, again and again until the
// check passes. Before that the engine scans nothing, and unavailable_reason() tells why requests are refused.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

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
  bool is_answering = true;      // the database answered when the node opened it
  SessionConfig session;         // for all connections but the engine's
  DatabaseEngineConfig engine;
  int shards = 0;                          // of the whole installation
  int db_pool = 4;                         // threads of post()
  std::map<std::string, int> retain_days;  // days for which history is kept, by final status
  NodeId node_id = 0;                      // of this node
};

// Its many data members are its state, and its parts with their threads. Thread: any; but the constructor, start(),
// begin_drain(), stop_engine(), stop_outbox_waiter(), stop() and the destructor owner only (the thread that starts and
// stops the node).
class Database {
 public:
  struct Hooks {
    HandlerFinder find_handler;  // called on the engine's runner thread
    // `check` and `reload_types` are called by start() and on the housekeeping thread. `check`: Error invalid: another
    // database answers than the registered one. `reload_types`: in the control database, reads the types; in another
    // one, writes their copy (the mirror).
    std::function<Status()> check;
    std::function<Status(Database&, TypeStore&)> reload_types;
    // Called on the thread that receives notifications, for the control database only: the members of the cluster or
    // the shard map (which node and which database have each shard) may have changed.
    std::function<void()> members_changed;
  };
  // `polls`: requests of consumers that wait for due jobs, of the whole node. REQUIRES: `clock` and `metrics` outlive
  // it.
  Database(DatabaseConfig config, const Clock& clock, Metrics& metrics, std::shared_ptr<PollQueue> polls, Hooks hooks);
  ~Database();

  // Starts the housekeeping and the engine. Error, for the control database only: it does not answer, or another
  // database answers at its address.
  Status start();
  // A stop has three calls, in this order.
  // - begin_drain(): the engine scans and claims no more.
  // - stop_engine(): waits up to `grace` for running attempts. If some still run, calls `abandon`, which must end them.
  //   Then writes the outcomes and ends the engine's threads. False: not all outcomes were written in time.
  // - stop(): answers the accepted requests and ends all threads.
  void begin_drain() { engine_.engine().begin_drain(); }
  bool stop_engine(Duration grace, const std::function<void()>& abandon) { return engine_.stop(grace, abandon); }
  void stop();

  DatabaseId database_id() const { return config_.database_id; }
  bool is_control() const { return config_.database_id == 0; }
  const std::string& name() const { return config_.name; }
  std::string title() const { return config_.name + " (" + config_.address + ")"; }
  DatabaseEngine& engine() { return engine_; }
  const DatabaseEngine& engine() const { return engine_; }
  const EngineShared& shared() const { return engine_.engine().shared(); }

  // Error unavailable: the database cannot be used, because it has not been checked yet or another database answers at
  // its address. nullopt: it can be used, though it may not answer at the moment.
  std::optional<Error> unavailable_reason() const;
  // The database can be used and has answered lately (maintenance/outage_watch.h).
  bool is_answering() const;
  // `mine`: the shards in this database that this node scans, as soon as the database can be used. `all`: all shards in
  // it, whichever node scans them.
  void set_shards(std::vector<Shard> mine, std::vector<Shard> all);
  std::size_t shards() const;  // how many shards in this database this node scans
  // Logs and counts a failure of a call to this database. With several databases the log names this one.
  void report_failure(std::string_view stage, const Error& error) { events_.note_failure(stage, error); }
  // Numbers of jobs by type, for the metrics; read every 10 s.
  std::vector<TypeState> type_states() const {
    MutexLock lock(mutex_);
    return type_states_;
  }

  // Whether mirror() has written this type since the last failure or new connection; in the control database always
  // true. If not, the caller must call mirror() before it creates a job of the type.
  bool has_type(TypeId type) const;
  // Writes the types of `catalog` that have changed since the last mirror() into this database. `store`: of this
  // database. Error: of the store; has_type() answers as before. REQUIRES: not the control database.
  Status mirror(TypeStore& store, const TypeCatalog& catalog);
  // Number of history tables that the database's clock alone says are past their retention. They are kept until a
  // second source of time agrees.
  std::int64_t withheld_history() const { return withheld_history_; }
  void reload_types() { housekeeping_.reload_types(); }

  // create(), change(), read() and write_lease() queue a request; requests that arrive together share statements and
  // commits. False: the queue is full; the request is dropped without a reply. Otherwise `done` (in the item) is called
  // once, on a thread of this database.
  bool create(NewJob job, std::function<void(Result<CreateReply>)> done);
  // `is_retry`: this request was answered as locked before. It goes to the thread that retries locked rows, so that it
  // does not delay first attempts.
  bool change(ChangeItem item, bool is_retry);
  bool read(ReadItem item) { return reads_.push(std::move(item)); }
  bool write_lease(LeaseItem item) { return leases_.push(std::move(item)); }
  // Calls `done` when no entry of these jobs waits in this database's outbox, after 2 s at the latest; its argument
  // says which (multidb/outbox_waiter.h). False: too many wait; `done` is not called. REQUIRES: the node has several
  // databases.
  bool await_outbox(std::vector<EntryQuery> queries, OutboxWaiter::Done done) {
    TOCSIN_ASSERT(outbox_waiter_);
    return outbox_waiter_->push(std::move(queries), std::move(done));
  }
  // Calls `done` with the shards that live in this database (multidb/outbox_waiter.h). False and REQUIRES: as of
  // await_outbox().
  bool ask_shards(OutboxWaiter::ShardsDone done) {
    TOCSIN_ASSERT(outbox_waiter_);
    return outbox_waiter_->ask_shards(std::move(done));
  }
  // Answers all calls of await_outbox() and ask_shards() that wait. Their requests are then sent to other databases, so
  // call it for every database before stop() of the first.
  void stop_outbox_waiter() {
    if (outbox_waiter_) outbox_waiter_->stop();
  }
  // Each runs `work` on a thread of its own pool, so a slow pool delays no other. False: the pool's queue is full.
  // - post(): writes and short reads, on `db_pool` threads.
  // - post_read(): slow reads, on two threads; a statement is cancelled after 5 s.
  // - post_waiting(): writes that wait for locks of other transactions, on four threads.
  // - post_type_retry(): retries of the dead jobs of a type, on one thread.
  bool post(std::function<void(Stores&)> work) { return pool_.post(std::move(work)); }
  bool post_read(std::function<void(Stores&)> work) { return readers_.post(std::move(work)); }
  bool post_waiting(std::function<void(Stores&)> work) { return lock_waiters_.post(std::move(work)); }
  bool post_type_retry(std::function<void(Stores&)> work) { return type_retries_.post(std::move(work)); }
  // Passes a job that is due soon to this node's engine if this node owns the shard; otherwise notifies the owner.
  // Notifies also after this node's membership lease has ended, because another node may own the shard then. Does
  // nothing for a job due later than the lookahead and a second (6 s): a scan finds it in time.
  void hint(const Candidate& job);

 private:
  using Versions = std::map<TypeId, WallTime>;

  Housekeeping::Callbacks callbacks(Hooks hooks);
  void note_failure(const Error& error);
  void open();                   // after a check that passed: scans and accepts requests
  void close(const Error& why);  // another database answers

  const DatabaseConfig config_;
  const Clock& clock_;
  ReportBuffer reports_;
  OutageWatch watch_;
  DatabaseEvents events_;
  std::atomic<std::int64_t> withheld_history_{0};
  mutable Mutex mutex_;
  bool is_open_ TOCSIN_GUARDED_BY(mutex_) = false;
  bool is_refused_ TOCSIN_GUARDED_BY(mutex_) = false;  // another database answers at its address
  Error trouble_ TOCSIN_GUARDED_BY(mutex_){ErrorCode::unavailable, "has not answered yet", ""};
  std::vector<Shard> mine_ TOCSIN_GUARDED_BY(mutex_), all_ TOCSIN_GUARDED_BY(mutex_);
  Versions mirrored_ TOCSIN_GUARDED_BY(mutex_);
  std::vector<TypeState> type_states_ TOCSIN_GUARDED_BY(mutex_);
  // From here on members have threads.
  Housekeeping housekeeping_;
  DatabaseEngine engine_;
  RequestPool pool_, readers_, lock_waiters_, type_retries_;
  std::optional<OutboxWaiter> outbox_waiter_;  // with several databases
  // The coalescers below push to these three, so these are declared before them and destroyed after them.
  LockedRowRetries<CreateItem> locked_creates_;
  LockedRowRetries<ChangeItem> locked_jobs_;
  LockedRowRetries<LeaseItem> locked_leases_;
  Coalescer<CreateItem> creates_, keyed_creates_;
  Coalescer<ChangeItem> changes_;
  Coalescer<LeaseItem> leases_;
  Coalescer<ReadItem> reads_;
  HintSender hints_;
};

}  // namespace tocsin

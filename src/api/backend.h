// Backend: the interface through which REST handlers (src/api) and entry consumers (src/entry) use the node: jobs,
// leases, types, the threads of its databases, the state of the cluster. Implemented by NodeBackend
// (node/node_backend.h), and by a fake in tests.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "audit/audit.h"
#include "bulk/bulk_runner.h"
#include "core/endpoint_info.h"
#include "ports/biz_type.h"
#include "ports/client_store.h"
#include "ports/event.h"
#include "ports/member_store.h"
#include "ports/outbox_store.h"
#include "ports/report_store.h"
#include "ports/type_store.h"

namespace tocsin {

// Field of an Error unavailable: a queue of this node is full. The API answers 429, and 503 for other Errors
// unavailable.
inline constexpr const char* kFull = "queue";
inline Error too_many_requests() { return {ErrorCode::unavailable, "too many requests wait for it", kFull}; }

// Field of an Error conflict: a SQL caller created the job for a shard of another database, and the job still waits in
// an outbox, on its way there; or a database did not tell whether that is so, or whether the shard lives in it.
inline constexpr const char* kInOutbox = "outbox";
// The answer if a job is not found, but `database` does not answer and may have the job in its outbox.
inline Error maybe_in_outbox(const std::string& database) {
  return {ErrorCode::conflict,
          "There is no such job, unless it is on its way from the database " + database + ", which does not answer",
          kInOutbox};
}

// The stores of one database for one thread; valid only inside the call that receives it.
struct Stores {
  DatabaseId database_id;
  ClientStore& client_store;
  ReportStore& reports;
  TypeStore& types;
  Duration queued{0};  // how long the work waited for this thread
};

// Work of Backend::post_waiting() that was queued for longer waits for no lock: the time that its caller was to wait
// for one has passed.
inline constexpr Duration kMostQueuedForLocks = std::chrono::seconds(3);

// What requests about bulk operations (one action on every job that matches a filter) need; valid only inside the call
// that receives it.
struct BulkAccess {
  NodeId node;
  std::span<const BulkDatabase> databases;  // the control database first
  BulkRunner& runner;
};

struct LatencySummary {  // lateness in ms of the n first starts on this node in the last four to five minutes
  std::int64_t n = 0;
  double p50 = 0, p90 = 0, p99 = 0, max = 0;
};

struct Readiness {
  // Not draining, at least one database works, and the node is a member. With several databases a node stays ready when
  // its membership lease has ended.
  bool is_ready = false;
  bool is_degraded = false;                                 // a database, an entry topic or membership has trouble
  std::vector<std::pair<std::string, std::string>> checks;  // name, and "ok" or what is wrong
  std::vector<std::string> warnings;                        // settings that an operator should change
};

// A consumer's request for due jobs of a pull type (a type whose jobs consumers lease over REST). Its functions may be
// called on any thread and must not block.
struct LeaseCall {
  TypeId type_id = 0;
  std::size_t max = 1;            // jobs in the answer, at most
  Duration wait{0};               // how long to wait for the first job; 0: only jobs that are due now
  Duration ttr{0};                // length of the leases
  std::function<bool()> is_gone;  // true: the consumer has disconnected, and no job must be leased to it
  // Called once, unless the consumer is gone. `jobs` is empty if none became due in time, or the node is shutting down.
  std::function<void(std::vector<ClaimedJob> jobs)> done;
};

struct NodeInfo {
  NodeId id = 0;
  std::string name;
  std::string state;  // active, draining, or lost: silent for longer than the heartbeat time-out
  std::string version;
  Duration heartbeat_age{0};
  std::vector<Shard> shards;             // the shards that it scans, in order
  std::vector<ScannedDatabase> scanned;  // by database: the time since its last scan of its shards there
};

// A shard that is moving to another database.
struct MoveInfo {
  Shard shard = 0;
  DatabaseId target = 0;
  std::string state;  // copying, switching, switched, aborting
};

// Only functions that take Stores wait for a database. No `work` and no `done` may throw: the process would end.
// Thread: any.
class Backend {
 public:
  virtual ~Backend() = default;

  // create() to list_key() each send one request for one job or one key (a biz_id); requests that arrive together share
  // statements and commits.
  // - True: `done` is called once, on another thread. If the database cannot be used, it is called at once, on the
  //   caller's.
  // - False: the queue is full, and `done` is not called (answer 429).
  // - A row or a key that another transaction holds delays its own request by 3 s at most, and other requests of its
  //   kind by 50 ms at most (creates with a key by 0.3 s), besides what the tries write.
  virtual bool create(NewJob job, std::function<void(Result<CreateReply>)> done) = 0;
  virtual bool cancel(JobId job, std::function<void(Result<CancelReply>)> done) = 0;
  virtual bool cancel_key(KeyCancel key, std::function<void(Result<KeyCancelReply>)> done) = 0;
  virtual bool change(PendingChange change, std::function<void(Result<ChangeReply>)> done) = 0;
  virtual bool retry(JobId job, std::function<void(Result<ChangeReply>)> done) = 0;
  virtual bool get(JobId job, std::function<void(Result<std::optional<Job>>)> done) = 0;
  virtual bool list_key(KeyQuery query, std::function<void(Result<KeyList>)> done) = 0;

  // Waits until no outbox (jobs of SQL callers on their way to another database) has an entry for the jobs or keys of
  // `queries`, then calls `proceed` once. So a request sees what SQL callers committed before it (ADR 0022).
  // - Result: the databases that do not answer and were therefore not asked. What is not found may wait in one of them.
  // - Error conflict, field kInOutbox: an entry still waits after 2 s, or a lookup failed.
  // - Error unavailable, field kFull: too many requests wait.
  // - Thread: `proceed` is called on any thread, the caller's included. With a single database it is called at once.
  //
  // REST handlers call it before a create with an idempotency key.
  using Unasked = std::vector<DatabaseId>;
  virtual void after_outboxes(std::vector<EntryQuery> queries, std::function<void(Result<Unasked>)> proceed) = 0;
  // after_outboxes(), and then waits until the shards of `queries` live where this node looks for them: its shard map
  // may be old after a move (ADR 0021). REST handlers call it before a request about a key. A request about one job
  // does so by itself if the job is not found.
  // - Error moved: after 3 s a shard still lives in another database than this node's map says.
  // - Error conflict, field kInOutbox: also if a database did not tell its shards.
  virtual void when_findable(std::vector<EntryQuery> queries, std::function<void(Result<Unasked>)> proceed) = 0;

  // What consumers report about their leases in one database: outcomes, and extensions. `done` gets one reply per
  // lease, in order. Return value: as of create(). REQUIRES: unavailable_reason() of the database returned nullopt.
  virtual bool finish_leases(DatabaseId database_id, std::vector<FinishRequest> outcomes,
                             std::function<void(Result<std::vector<LeaseResult>>)> done) = 0;
  virtual bool extend_leases(DatabaseId database_id, std::vector<Extension> extensions,
                             std::function<void(Result<std::vector<LeaseResult>>)> done) = 0;

  // Reads what reports need to know of these leases' jobs (ClientStore::leased). Requests that arrive together share a
  // statement, with the threads of finish_leases(): they wait for no other read. Return value and REQUIRES: as above.
  virtual bool read_leases(DatabaseId database_id, std::vector<Lease> leases,
                           std::function<void(Result<std::vector<std::optional<LeasedJob>>>)> done) = 0;

  // Adds the consumer to the waiting ones. False: too many wait already, and LeaseCall::done is not called (answer
  // 429).
  virtual bool lease(LeaseCall call) = 0;
  // Update the node's table of the leases that count against max_running (how many jobs of a type may run in the
  // cluster). note_ended(): these leases ended at this node (ack, nack). note_extended(): these leases last `ttr` from
  // now.
  virtual void note_ended(std::span<const Lease> leases) = 0;
  virtual void note_extended(TypeId type, std::span<const Lease> leases, Duration ttr) = 0;
  // Whether the cluster learns that this node extends leases of this type, which has a max_running. False while the
  // control database is down: the other nodes then see the leases end at their earlier time, and may use the permits.
  virtual bool are_leases_counted(TypeId type) const = 0;
  // Adds `n` to a counter of the metrics, for results of leased jobs.
  virtual void count(Counter what, std::int64_t n) = 0;
  // `n` attempts of leased jobs of this type have ended with `ending`; for the metrics.
  virtual void note_outcomes(TypeId type, EventSink::Ending ending, std::int64_t n) = 0;

  // Each runs `work` on a thread of that database; the pools do not delay one another. False: the pool's queue is full
  // (answer 429). REQUIRES: unavailable_reason() of the database returned nullopt.
  // - post(): writes and short reads.
  // - post_read(): reads that may be slow, on two threads. A statement is cancelled after 5 s: Error unavailable, field
  //   kTooSlow.
  // - post_waiting(): work that waits for rows or keys that other transactions hold, on four threads.
  // - post_type_retry(): retries of the dead jobs of a type, which search a large history for seconds, on one thread.
  virtual bool post(DatabaseId database_id, std::function<void(Stores&)> work) = 0;
  virtual bool post_read(DatabaseId database_id, std::function<void(Stores&)> work) = 0;
  virtual bool post_waiting(DatabaseId database_id, std::function<void(Stores&)> work) = 0;
  virtual bool post_type_retry(DatabaseId database_id, std::function<void(Stores&)> work) = 0;

  // Runs `work` on the node's thread for bulk operations; it may block for database calls. The operation that the node
  // runs has a turn after each request. False: its queue is full (answer 429).
  virtual bool post_bulk(std::function<void(BulkAccess&)> work) = 0;
  // Puts a successful write into the audit log (service/audit_log.h); a call without a token is not recorded. Entries
  // are stored about a second later, sums of counted calls once a minute. Entries that cannot be stored wait; when too
  // many wait, further ones are lost.
  virtual void record(AuditEntry entry) = 0;

  // Tells the node that owns the job's shard that the job is due soon, so that the job need not wait for the next scan.
  // Call for jobs that may be due within 6 s (the lookahead of scans and a second). The hint may be lost: the scan
  // finds the job.
  virtual void hint(JobId job, TypeId type, WallTime fire_at) = 0;

  // The types as this node read them last; never null.
  virtual std::shared_ptr<const TypeCatalog> types() const = 0;
  // Reads the registry (the stored types) into types(), in the control database. On a thread of another database it
  // only requests the read, and succeeds.
  virtual Status reload_types(Stores& stores) = 0;
  // Updates the mirror (the copy of the registry) in every database that answers, then calls `done` once, on any
  // thread, the caller's included. Failed updates are not reported; housekeeping repeats them.
  virtual void mirror_types(std::function<void()> done) = 0;
  // Updates the mirror in the database of `stores`. Call it there before a create of a job.
  virtual Status make_types_known(Stores& stores) = 0;
  // The mistake in the handler's kind or settings, with its field; nullopt: this node can run the handler.
  virtual std::optional<Error> check_handler(const BizType& type) const = 0;

  virtual int shards() const = 0;
  virtual std::string node_name() const = 0;
  virtual WallTime now() const = 0;             // a lower bound of the databases' clock; WallTime{}: not known yet
  virtual LatencySummary lateness() const = 0;  // zeros without any start
  virtual Readiness readiness() const = 0;
  virtual std::string metrics_text() const = 0;  // Prometheus exposition format
  // Why a due job does not start on this node now, as a part of a sentence, such as "its type is paused"; "" when
  // nothing is known to hold it. If job.job_id is 0: what holds any job of the type, in any database.
  virtual std::string hold_reason(const Job& job) const = 0;
  // How many jobs of a type run in the whole cluster, as far as this node knows; nullopt: not known, or the type has no
  // max_running.
  virtual std::optional<int> running(TypeId type) const = 0;
  // All nodes that this node knows of, by name; empty before its first heartbeat was answered.
  virtual std::vector<NodeInfo> nodes() const = 0;
  // The endpoints (scheme, host and port) that this node delivers to, and the entry topics that it consumes; in no
  // order.
  virtual std::vector<EndpointInfo> endpoints() const = 0;
  // Shards that are moving to another database, as far as this node knows.
  virtual std::vector<MoveInfo> moves() const = 0;
  // Name of the node that scans this shard, as far as this node knows; "" when none does.
  virtual std::string shard_owner(Shard shard) const = 0;

  // The databases that this node was started with, the control database (0) first.
  virtual std::vector<DatabaseId> database_ids() const = 0;
  // The database in which this shard's jobs are, as far as this node knows. This node may have been started without it:
  // then unavailable_reason() says so.
  virtual DatabaseId database_of(Shard shard) const = 0;
  virtual std::string database_name(DatabaseId database_id) const = 0;   // as registered; "number 7" if unknown
  virtual std::string database_title(DatabaseId database_id) const = 0;  // "name (host:port/database)", for messages
  // Error unavailable: this node was not started with the database, it has never answered, or another database answers
  // at its address. nullopt: the database can be used, though it may not answer at the moment.
  virtual std::optional<Error> unavailable_reason(DatabaseId database_id) const = 0;
  // False: the database cannot be used, or does not answer (maintenance/outage_watch.h).
  virtual bool is_answering(DatabaseId database_id) const = 0;
};

}  // namespace tocsin

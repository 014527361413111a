// Backend: the interface through which REST handlers and entry consumers (entry.h) use the node: jobs, leases, types,
// the threads of its databases, its state. Implemented by NodeBackend, and by a fake in tests.
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

// Error::field of unavailable: the queue of a database is full on this node. The API answers it 429 instead of 503.
inline constexpr const char* kFull = "queue";
inline Error too_many_requests() { return {ErrorCode::unavailable, "too many requests wait for it", kFull}; }

// Error::field of conflict: the job waits in an outbox, on its way to the database of its shard.
inline constexpr const char* kInOutbox = "outbox";
// Of a job that is not found while a database is away.
inline Error maybe_in_outbox(const std::string& database) {
  return {ErrorCode::conflict,
          "There is no such job, unless it is on its way from the database " + database + ", which does not answer",
          kInOutbox};
}

// One thread's set of stores of one database; valid only inside the call that receives it.
struct Stores {
  DatabaseId database_id;
  ClientStore& client_store;
  ReportStore& reports;
  TypeStore& types;
};

// What requests about bulk operations need; valid only inside the call that receives it.
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
  bool is_ready = false;                                    // not draining, and at least one database works
  bool is_degraded = false;                                 // a database, an entry topic or membership has trouble
  std::vector<std::pair<std::string, std::string>> checks;  // name, and "ok" or what is wrong
  std::vector<std::string> warnings;                        // settings that an operator should change
};

// A consumer's request for due jobs of a pull type. Its functions may be called on any thread and must not block.
struct LeaseCall {
  TypeId type_id = 0;
  std::size_t max = 1;            // jobs in the answer, at most
  Duration wait{0};               // for the first job; 0: for those that are due now
  Duration ttr{0};                // length of the leases
  std::function<bool()> is_gone;  // the connection is closed: jobs must not be leased to it
  // Called once, unless the consumer is gone. No jobs: none became due in time, or the node is shutting down.
  std::function<void(std::vector<ClaimedJob> jobs)> done;
};

struct NodeInfo {
  NodeId id = 0;
  std::string name;
  std::string state;  // active, draining, or lost: silent for longer than the heartbeat time-out
  std::string version;
  Duration heartbeat_age{0};
  std::vector<Shard> shards;             // that it scans, in order
  std::vector<ScannedDatabase> scanned;  // by database: how long ago it last scanned its shards there
};

// A shard that is moving to another database.
struct MoveInfo {
  Shard shard = 0;
  DatabaseId target = 0;
  std::string state;  // copying, switching, switched, aborting
};

// No function blocks for a database, except those that take Stores. No `work` and no `done` may throw: the process
// would end. Thread: any.
class Backend {
 public:
  virtual ~Backend() = default;

  // Requests for one job or key: create() to list_key(). Those that arrive together share statements and commits. True:
  // `done` is called once, on another thread, or at once on the caller's when the database cannot be used. False: the
  // queue is full, `done` will not be called (answer 429). A row that another transaction holds locked delays its own
  // request by seconds at most, and the others by 50 ms at most.
  virtual bool create(NewJob job, std::function<void(Result<CreateReply>)> done) = 0;
  virtual bool cancel(JobId job, std::function<void(Result<CancelReply>)> done) = 0;
  virtual bool cancel_key(KeyCancel key, std::function<void(Result<KeyCancelReply>)> done) = 0;
  virtual bool change(PendingChange change, std::function<void(Result<ChangeReply>)> done) = 0;
  virtual bool retry(JobId job, std::function<void(Result<ChangeReply>)> done) = 0;
  virtual bool get(JobId job, std::function<void(Result<std::optional<Job>>)> done) = 0;
  virtual bool list_key(KeyQuery query, std::function<void(Result<KeyList>)> done) = 0;

  // With several databases: calls `proceed` once no outbox has an entry of these jobs or keys, so that a request sees
  // what SQL callers committed before it (ADR 0022). The result: databases that are known not to answer and were not
  // asked, so what is not found may wait in one of them. Error conflict, field kInOutbox: an entry still waits after
  // 2 s, or a lookup failed; unavailable: too many wait. REST calls it before a request about a key. Requests about a
  // job look by themselves when its database does not have it. Calls `proceed` once, on any thread, the caller's
  // included (with a single database always); it must not throw.
  using Unasked = std::vector<DatabaseId>;
  virtual void after_outboxes(std::vector<EntryQuery> queries, std::function<void(Result<Unasked>)> proceed) = 0;

  // What consumers report of leases of one database: `done` gets a reply per lease, in order. Return value: as of
  // create(). REQUIRES: unavailable_reason() of the database returned nullopt.
  virtual bool finish_leases(DatabaseId database_id, std::vector<FinishRequest> outcomes,
                             std::function<void(Result<std::vector<LeaseResult>>)> done) = 0;
  virtual bool extend_leases(DatabaseId database_id, std::vector<Extension> extensions,
                             std::function<void(Result<std::vector<LeaseResult>>)> done) = 0;

  // Adds the consumer to those that wait. False: too many wait already, LeaseCall::done will not be called (answer
  // 429).
  virtual bool lease(LeaseCall call) = 0;
  // Update the node's table of the leases that count against max_running. note_ended: leases that ended at this node
  // (ack, nack). note_extended: leases that last `ttr` from now.
  virtual void note_ended(std::span<const Lease> leases) = 0;
  virtual void note_extended(TypeId type, std::span<const Lease> leases, Duration ttr) = 0;
  // Whether the cluster learns that this node extends leases of this type (with max_running). False while the control
  // database is down: other nodes get their permits when the leases have ended as far as they know.
  virtual bool are_leases_counted(TypeId type) const = 0;
  // Adds `n` to a counter of the metrics: results of leased jobs.
  virtual void count(Counter what, std::int64_t n) = 0;
  // `n` attempts of leased jobs of this type ended so.
  virtual void note_outcomes(TypeId type, EventSink::Ending ending, std::int64_t n) = 0;

  // Runs `work` on a thread of that database: writes and short reads. False: its queue is full (answer 429). REQUIRES:
  // unavailable_reason() of the database returned nullopt.
  virtual bool post(DatabaseId database_id, std::function<void(Stores&)> work) = 0;
  // The same for reads that may be slow, on two threads of their own. A statement is cancelled after 5 s: Error
  // unavailable, field kTooSlow.
  virtual bool post_read(DatabaseId database_id, std::function<void(Stores&)> work) = 0;
  // The same for work that waits for rows or keys that other transactions hold, on four threads of its own. False: too
  // many wait already.
  virtual bool post_waiting(DatabaseId database_id, std::function<void(Stores&)> work) = 0;

  // Runs `work` on the node's thread for bulk operations, between two batches; it may block for database calls. False:
  // its queue is full (answer 429).
  virtual bool post_bulk(std::function<void(BulkAccess&)> work) = 0;
  // Puts a successful write into the audit log, if it was made with a token. Stored about a second later, sums of
  // counted writes once a minute; entries that cannot be stored wait, and are lost when too many wait.
  virtual void record(AuditEntry entry) = 0;

  // Hints a job that may be due within the lookahead and a second (6 s) to the node that owns its shard, which need not
  // wait for its next scan then. May be lost: the scan finds the job.
  virtual void hint(JobId job, TypeId type, WallTime fire_at) = 0;

  // The types as this node read them last; never null.
  virtual std::shared_ptr<const TypeCatalog> types() const = 0;
  // Reads the registry of types into types(). On a thread of another database than the control database it only
  // requests the read, and succeeds.
  virtual Status reload_types(Stores& stores) = 0;
  // Updates the mirror (the copy of the registry) in every database that answers, then calls `done` once, on any
  // thread, the caller's included. Failures are repeated later, and not reported.
  virtual void mirror_types(std::function<void()> done) = 0;
  // Updates the mirror in the database of `stores`; call it before jobs are created there.
  virtual Status make_types_known(Stores& stores) = 0;
  // The error in the handler's kind or settings, with its field; nullopt: this node can run it.
  virtual std::optional<Error> check_handler(const BizType& type) const = 0;

  virtual int shards() const = 0;
  virtual std::string node_name() const = 0;
  virtual WallTime now() const = 0;             // a lower bound of the database's clock; WallTime{}: not known yet
  virtual LatencySummary lateness() const = 0;  // zeros without any start
  virtual Readiness readiness() const = 0;
  virtual std::string metrics_text() const = 0;  // Prometheus exposition format
  // Why a due job does not start on this node now, as a part of a sentence, such as "its type is paused"; "" when
  // nothing is known to hold it. A job_id of 0: what holds any job of the type, in whichever database it is.
  virtual std::string hold_reason(const Job& job) const = 0;
  // How many jobs of a type run in the whole cluster, as far as this node knows; nullopt: unknown, or no max_running.
  virtual std::optional<int> running(TypeId type) const = 0;
  // All nodes that this node knows of, by name; empty before its first heartbeat was answered.
  virtual std::vector<NodeInfo> nodes() const = 0;
  // The endpoints that this node delivers to and the entry topics that it consumes, in no order.
  virtual std::vector<EndpointInfo> endpoints() const = 0;
  // Shards that are moving to another database, as far as this node knows.
  virtual std::vector<MoveInfo> moves() const = 0;
  // Name of the node that scans this shard, as far as this node knows; "" when none does.
  virtual std::string shard_owner(Shard shard) const = 0;

  // The databases that this node was started with, the control database (0) first.
  virtual std::vector<DatabaseId> database_ids() const = 0;
  // The database of this shard's jobs, as far as this node knows; it may be one that the node was not started with.
  virtual DatabaseId database_of(Shard shard) const = 0;
  virtual std::string database_name(DatabaseId database_id) const = 0;   // as registered; "number 7" if unknown
  virtual std::string database_title(DatabaseId database_id) const = 0;  // "name (host:port/database)", for messages
  // Error unavailable: the node was not started with this database, it has never answered, or another database answers
  // at its address. nullopt: it can be used (which does not mean that it answers at the moment).
  virtual std::optional<Error> unavailable_reason(DatabaseId database_id) const = 0;
  // False: the database has not answered lately.
  virtual bool is_answering(DatabaseId database_id) const = 0;
};

}  // namespace tocsin

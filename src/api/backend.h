// Backend: the interface through which REST handlers use the node (database threads, consumers, state). Implemented by
// NodeBackend, and by a fake in tests.
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
#include "ports/event.h"
#include "ports/job_desk.h"
#include "ports/member_store.h"
#include "ports/report_store.h"

namespace tocsin {

// One thread's set of stores of one database; valid only inside the call that receives it.
struct Stores {
  DatabaseId database_id;
  JobDesk& desk;
  ReportStore& reports;
  TypeStore& types;
};

// What requests about bulk operations need; valid only inside the call that receives it.
struct BulkAccess {
  NodeId node;
  std::span<const BulkDatabase> databases;  // the control database first
  BulkRunner& runner;
};

struct LatencySummary {  // milliseconds; of first starts on this node in the last minutes
  std::int64_t n = 0;
  double p50 = 0, p90 = 0, p99 = 0, max = 0;
};

struct Readiness {
  bool is_ready = false;
  bool is_degraded = false;                                 // ready, but without one of its databases or entries
  std::vector<std::pair<std::string, std::string>> checks;  // name -> "ok" or what is wrong
  std::vector<std::string> warnings;                        // settings that an operator should change
};

// A consumer asks for due jobs of a pull type. All functions may be called on any thread.
struct LeaseCall {
  TypeId type_id = 0;
  std::size_t max = 1;
  Duration wait{0};                                        // how long it waits for the first job
  Duration ttr{0};                                         // length of the leases
  std::function<bool()> is_gone;                           // the connection is closed: an answer is useless
  std::function<void(std::vector<ClaimedJob> jobs)> done;  // called once, unless the consumer is gone
};

struct NodeInfo {
  NodeId id = 0;
  std::string name;
  std::string state;  // active, draining, or lost: silent for longer than the heartbeat time-out
  std::string version;
  Duration heartbeat_age{0};
  std::vector<Shard> shards;             // that it scans, in order
  std::vector<ScannedDatabase> scanned;  // since it last scanned them, by the database they live in
};

// A shard on its way to another database.
struct MoveInfo {
  Shard shard = 0;
  DatabaseId target = 0;
  std::string state;  // copying, switching, switched, aborting
};

// Thread: any.
class Backend {
 public:
  virtual ~Backend() = default;

  // Single requests: those that arrive together share statements and commits. `done` runs on a database thread. A row
  // that another transaction holds locked delays only its own request. False: the queue is full, `done` will not be
  // called (answer 429).
  virtual bool create(NewJob job, std::function<void(Result<CreateReply>)> done) = 0;
  virtual bool cancel(JobId job, std::function<void(Result<CancelReply>)> done) = 0;
  virtual bool cancel_key(KeyCancel key, std::function<void(Result<KeyCancelReply>)> done) = 0;
  virtual bool change(PendingChange change, std::function<void(Result<ChangeReply>)> done) = 0;
  virtual bool retry(JobId job, std::function<void(Result<ChangeReply>)> done) = 0;
  virtual bool get(JobId job, std::function<void(Result<std::optional<Job>>)> done) = 0;
  virtual bool list_key(KeyQuery query, std::function<void(Result<std::vector<Job>>)> done) = 0;

  // What consumers report of leases of one database: `done` gets a reply per lease, in order. REQUIRES:
  // unavailable_reason() of it is empty.
  virtual bool finish_leases(DatabaseId database_id, std::vector<FinishRequest> outcomes,
                             std::function<void(Result<std::vector<LeaseReply>>)> done) = 0;
  virtual bool extend_leases(DatabaseId database_id, std::vector<Extension> extensions,
                             std::function<void(Result<std::vector<ExtendReply>>)> done) = 0;

  // False: too many consumers wait already, `done` will not be called (answer 429).
  virtual bool lease(LeaseCall call) = 0;
  // Leases that ended at this node (ack, nack), and leases extended by `ttr`: updates the lease table.
  virtual void note_ended(std::span<const Lease> leases) = 0;
  virtual void note_extended(TypeId type, std::span<const Lease> leases, Duration ttr) = 0;
  // Whether leases of a type with max_running that this node extends are counted in the whole cluster. Not while the
  // control database is down: their permits pass to other nodes when the leases known there have ended.
  virtual bool are_leases_counted(TypeId type) const = 0;
  // For the metrics: results of leased jobs.
  virtual void count(Counter what, std::int64_t n) = 0;

  // Everything else: runs `work` on a thread of that database. False: its queue is full (answer 429).
  // REQUIRES: unavailable_reason() of it is empty.
  virtual bool post(DatabaseId database_id, std::function<void(Stores&)> work) = 0;
  // The same for reads that may be slow: few at a time, with a time limit, on threads and connections of their own.
  virtual bool post_read(DatabaseId database_id, std::function<void(Stores&)> work) = 0;

  // Runs `work` on the node's thread for bulk operations, between two batches. False: its queue is full (answer 429).
  virtual bool post_bulk(std::function<void(BulkAccess&)> work) = 0;
  // Stores a write that was made with a token; soon, and without an answer.
  virtual void record(AuditEntry entry) = 0;

  // Jobs that may be due within the lookahead: tells the engine of this node (and others) at once.
  virtual void hint(JobId job, TypeId type, WallTime fire_at) = 0;

  virtual std::shared_ptr<const TypeCatalog> types() const = 0;
  // After a change of the registry: reads it again. Call on a thread of the control database; on another one it only
  // requests it.
  virtual Status reload_types(Stores& stores) = 0;
  // Updates the mirrors of the registry in all databases that answer, then calls `done`, on any thread.
  virtual void mirror_types(std::function<void()> done) = 0;
  // Updates the mirror of the registry in this database; called before jobs are created there. Call on a thread of it.
  virtual Status make_types_known(Stores& stores) = 0;
  // The error in the handler's kind or settings, with its field; nullopt: this node can run it.
  virtual std::optional<Error> check_handler(const BizType& type) const = 0;

  virtual int shards() const = 0;
  virtual std::string node_name() const = 0;
  virtual WallTime now() const = 0;  // estimate of the database's clock
  virtual LatencySummary lateness() const = 0;
  virtual Readiness readiness() const = 0;
  virtual std::string metrics_text() const = 0;  // Prometheus exposition format
  // Why a due job does not start here right now ("" when it does): its type is paused, at a limit, unknown. A job_id of
  // 0: what holds any job of the type, in whichever database it is.
  virtual std::string hold_reason(const Job& job) const = 0;
  // How many jobs of a type with max_running run in the whole cluster, as far as this node knows.
  virtual std::optional<int> running(TypeId type) const = 0;
  // All nodes that this node knows of, by name; empty before its first heartbeat was answered.
  virtual std::vector<NodeInfo> nodes() const = 0;
  // The endpoints that this node delivers to and the entry topics that it consumes, in no order.
  virtual std::vector<EndpointInfo> endpoints() const = 0;
  // Shards on their way to another database, as far as this node knows.
  virtual std::vector<MoveInfo> moves() const = 0;
  // Name of the node that scans this shard, as far as this node knows; "" when none does.
  virtual std::string shard_owner(Shard shard) const = 0;

  // The databases of this node, the control database first.
  virtual std::vector<DatabaseId> database_ids() const = 0;
  // The database of this shard's jobs, as far as this node knows; it may be one that the node was not started with.
  virtual DatabaseId database_of(Shard shard) const = 0;
  virtual std::string database_name(DatabaseId database_id) const = 0;   // its own name
  virtual std::string database_title(DatabaseId database_id) const = 0;  // and where it is, for messages
  // Why the database cannot be used: not configured on this node, or not checked yet. nullopt: it can be used (which
  // does not mean that it answers at the moment).
  virtual std::optional<Error> unavailable_reason(DatabaseId database_id) const = 0;
  // False: the database has not answered lately.
  virtual bool is_answering(DatabaseId database_id) const = 0;
};

}  // namespace tocsin

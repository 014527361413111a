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

// Error::field of unavailable: a queue of this node is full.
inline constexpr const char* kFull = "queue";
inline Error too_many_requests() { return {ErrorCode::unavailable, "too many requests wait for it", kFull}; }

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
  std::size_t max = 1;            // jobs in the answer, at most
  Duration wait{0};               // how long it waits for the first job
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
  std::vector<ScannedDatabase> scanned;  // since it last scanned them, by the database they live in
};

// A shard that is moving to another database.
struct MoveInfo {
  Shard shard = 0;
  DatabaseId target = 0;
  std::string state;  // copying, switching, switched, aborting
};

// Thread: any.
class Backend {
 public:
  virtual ~Backend() = default;

  // Single requests: those that arrive together share statements and commits. True: `done` is called once, on a
  // database thread, or on the caller's when the database cannot be used. False: the queue is full, `done` will not be
  // called (answer 429). A row that another transaction holds locked delays its own request by seconds at most, and the
  // others by 50 ms at most.
  virtual bool create(NewJob job, std::function<void(Result<CreateReply>)> done) = 0;
  virtual bool cancel(JobId job, std::function<void(Result<CancelReply>)> done) = 0;
  virtual bool cancel_key(KeyCancel key, std::function<void(Result<KeyCancelReply>)> done) = 0;
  virtual bool change(PendingChange change, std::function<void(Result<ChangeReply>)> done) = 0;
  virtual bool retry(JobId job, std::function<void(Result<ChangeReply>)> done) = 0;
  virtual bool get(JobId job, std::function<void(Result<std::optional<Job>>)> done) = 0;
  virtual bool list_key(KeyQuery query, std::function<void(Result<std::vector<Job>>)> done) = 0;

  // What consumers report of leases of one database: `done` gets a reply per lease, in order. False: as above.
  // REQUIRES: unavailable_reason() of the database returned nullopt.
  virtual bool finish_leases(DatabaseId database_id, std::vector<FinishRequest> outcomes,
                             std::function<void(Result<std::vector<LeaseReply>>)> done) = 0;
  virtual bool extend_leases(DatabaseId database_id, std::vector<Extension> extensions,
                             std::function<void(Result<std::vector<ExtendReply>>)> done) = 0;

  // Lets the consumer wait for jobs. False: too many consumers wait already, `done` will not be called (answer 429).
  virtual bool lease(LeaseCall call) = 0;
  // Leases that ended at this node (ack, nack), and leases that last `ttr` from now: updates the node's table of the
  // leases that count against max_running.
  virtual void note_ended(std::span<const Lease> leases) = 0;
  virtual void note_extended(TypeId type, std::span<const Lease> leases, Duration ttr) = 0;
  // Whether the cluster learns of leases of this type (with max_running) that this node extends. Not while the control
  // database is down: it gives their permits to other nodes when the leases that it knows of have ended.
  virtual bool are_leases_counted(TypeId type) const = 0;
  // For the metrics: results of leased jobs.
  virtual void count(Counter what, std::int64_t n) = 0;

  // Everything else: runs `work` on a thread of that database. False: its queue is full (answer 429).
  // REQUIRES: unavailable_reason() of the database returned nullopt.
  virtual bool post(DatabaseId database_id, std::function<void(Stores&)> work) = 0;
  // The same for reads that may be slow: few at a time, with a time limit, on threads and connections of their own.
  virtual bool post_read(DatabaseId database_id, std::function<void(Stores&)> work) = 0;

  // Runs `work` on the node's thread for bulk operations, between two batches. False: its queue is full (answer 429).
  virtual bool post_bulk(std::function<void(BulkAccess&)> work) = 0;
  // Puts a write that was made with a token into the audit log; stored within about a second, a failure is only logged.
  virtual void record(AuditEntry entry) = 0;

  // Reports a job that may be due within the lookahead (5 s), so that its shard's owner need not wait for the next
  // scan. May be lost: the scan finds the job.
  virtual void hint(JobId job, TypeId type, WallTime fire_at) = 0;

  // The types as this node read them last; never null.
  virtual std::shared_ptr<const TypeCatalog> types() const = 0;
  // After a change of the registry: reads it again. On a thread of another database than the control database it only
  // requests the read.
  virtual Status reload_types(Stores& stores) = 0;
  // Updates the mirror (the copy of the registry) in every database that answers, then calls `done`, on any thread.
  virtual void mirror_types(std::function<void()> done) = 0;
  // Updates the mirror in the database of `stores`; called before jobs are created there.
  virtual Status make_types_known(Stores& stores) = 0;
  // The error in the handler's kind or settings, with its field; nullopt: this node can run it.
  virtual std::optional<Error> check_handler(const BizType& type) const = 0;

  virtual int shards() const = 0;
  virtual std::string node_name() const = 0;
  virtual WallTime now() const = 0;  // a lower bound of the database's clock; WallTime{}: not known yet
  virtual LatencySummary lateness() const = 0;
  virtual Readiness readiness() const = 0;
  virtual std::string metrics_text() const = 0;  // Prometheus exposition format
  // Why a due job does not start on this node now, as a part of a sentence, such as "its type is paused"; "" when
  // nothing is known to hold it. A job_id of 0: what holds any job of the type, in whichever database it is.
  virtual std::string hold_reason(const Job& job) const = 0;
  // How many jobs of a type with max_running run in the whole cluster, as far as this node knows.
  virtual std::optional<int> running(TypeId type) const = 0;
  // All nodes that this node knows of, by name; empty before its first heartbeat was answered.
  virtual std::vector<NodeInfo> nodes() const = 0;
  // The endpoints that this node delivers to and the entry topics that it consumes, in no order.
  virtual std::vector<EndpointInfo> endpoints() const = 0;
  // Shards that are moving to another database, as far as this node knows.
  virtual std::vector<MoveInfo> moves() const = 0;
  // Name of the node that scans this shard, as far as this node knows; "" when none does.
  virtual std::string shard_owner(Shard shard) const = 0;

  // The databases of this node, the control database first.
  virtual std::vector<DatabaseId> database_ids() const = 0;
  // The database of this shard's jobs, as far as this node knows; it may be one that the node was not started with.
  virtual DatabaseId database_of(Shard shard) const = 0;
  virtual std::string database_name(DatabaseId database_id) const = 0;   // as registered; "number 7" if unknown
  virtual std::string database_title(DatabaseId database_id) const = 0;  // "name (host:port/database)", for messages
  // Why the database cannot be used: not configured on this node, or not checked yet. nullopt: it can be used (which
  // does not mean that it answers at the moment).
  virtual std::optional<Error> unavailable_reason(DatabaseId database_id) const = 0;
  // False: the database has not answered lately.
  virtual bool is_answering(DatabaseId database_id) const = 0;
};

}  // namespace tocsin

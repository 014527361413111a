// NodeBackend: the Backend (api/backend.h) through which REST handlers and entry consumers use the node. Owned by the
// node (node_impl.h), one per node. It sends a request about a job to the database of the job's shard, and passes every
// other call to the part of the node that it concerns.
//
// With several databases it repeats a request in two cases: while the shard may be moving between databases, for up to
// 3 s; and after a "no such job", once the outboxes (jobs of SQL callers on their way to another database) have been
// asked, and the shard lives where this node looks for it.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "api/backend.h"
#include "delivery/handler_registry.h"
#include "metrics/metrics.h"
#include "multidb/retry_queue.h"
#include "node/database_map.h"
#include "node/membership.h"
#include "node/node_status.h"
#include "node/permits.h"
#include "node/type_publisher.h"
#include "service/audit_log.h"
#include "service/bulk_service.h"

namespace tocsin {

// The parts of a node that requests need. REQUIRES: they outlive the NodeBackend.
struct NodeParts {
  const Clock& clock;
  Metrics& metrics;
  HandlerRegistry& handlers;
  const DatabaseMap& map;
  TypePublisher& types;
  PollQueue& polls;
  Membership& membership;
  const NodeStatus& status;
  Permits& permits;
  BulkService& bulk;
  AuditLog& audit;
};

// The overrides are described in api/backend.h. Thread: any; but the constructor, stop_retries() and the destructor
// owner only (the thread that starts and stops the node).
class NodeBackend final : public Backend {
 public:
  NodeBackend(std::string node_name, int shards, const NodeParts& parts);  // `shards`: of the installation

  // How many due jobs of the type wait for a claim on this node, in all databases. The permit renewer (node/permits.h)
  // asks for permits accordingly. `fresh`: jobs due lately; `late`: jobs found late, which the type's catch-up rate
  // bounds. Of a pull type only `fresh` is set: at most the number of jobs that its waiting consumers ask for.
  Waiting waiting(TypeId type) const;
  // Tries the requests that wait for a moving shard once more, and refuses later ones. Call before the databases stop.
  void stop_retries() {
    if (retry_queue_) retry_queue_->stop();
  }

  bool create(NewJob job, std::function<void(Result<CreateReply>)> done) override;
  bool cancel(JobId job, std::function<void(Result<CancelReply>)> done) override;
  bool cancel_key(KeyCancel key, std::function<void(Result<KeyCancelReply>)> done) override;
  bool change(PendingChange change, std::function<void(Result<ChangeReply>)> done) override;
  bool retry(JobId job, std::function<void(Result<ChangeReply>)> done) override;
  bool get(JobId job, std::function<void(Result<std::optional<Job>>)> done) override;
  bool list_key(KeyQuery query, std::function<void(Result<KeyList>)> done) override;
  void after_outboxes(std::vector<EntryQuery> queries, std::function<void(Result<Unasked>)> proceed) override;
  void when_findable(std::vector<EntryQuery> queries, std::function<void(Result<Unasked>)> proceed) override;
  bool finish_leases(DatabaseId database_id, std::vector<FinishRequest> outcomes,
                     std::function<void(Result<std::vector<LeaseResult>>)> done) override {
    return map_.at(database_id)->write_lease({OutcomesAsked{std::move(outcomes), std::move(done)}});
  }
  bool extend_leases(DatabaseId database_id, std::vector<Extension> extensions,
                     std::function<void(Result<std::vector<LeaseResult>>)> done) override {
    return map_.at(database_id)->write_lease({ExtensionsAsked{std::move(extensions), std::move(done)}});
  }
  bool read_leases(DatabaseId database_id, std::vector<Lease> leases,
                   std::function<void(Result<std::vector<std::optional<LeasedJob>>>)> done) override {
    return map_.at(database_id)->write_lease({LeasedAsked{std::move(leases), std::move(done)}, {}});
  }
  bool lease(LeaseCall call) override;
  void note_ended(std::span<const Lease> leases) override { parts_.permits.flow()->leases().settle(leases); }
  void note_extended(TypeId type, std::span<const Lease> leases, Duration ttr) override;
  bool are_leases_counted(TypeId type) const override { return parts_.permits.flow()->is_counted(type, clock_.now()); }
  void count(Counter what, std::int64_t n) override { parts_.metrics.count(what, n); }
  void note_outcomes(TypeId type, EventSink::Ending ending, std::int64_t n) override {
    parts_.metrics.ended_elsewhere(type, ending, n);
  }
  bool post(DatabaseId database_id, std::function<void(Stores&)> work) override {
    return map_.at(database_id)->post(std::move(work));
  }
  bool post_read(DatabaseId database_id, std::function<void(Stores&)> work) override {
    return map_.at(database_id)->post_read(std::move(work));
  }
  bool post_waiting(DatabaseId database_id, std::function<void(Stores&)> work) override {
    return map_.at(database_id)->post_waiting(std::move(work));
  }
  bool post_type_retry(DatabaseId database_id, std::function<void(Stores&)> work) override {
    return map_.at(database_id)->post_type_retry(std::move(work));
  }
  bool post_bulk(std::function<void(BulkAccess&)> work) override { return parts_.bulk.post(std::move(work)); }
  void record(AuditEntry entry) override { parts_.audit.record(std::move(entry)); }
  void hint(JobId job, TypeId type, WallTime fire_at) override;
  std::shared_ptr<const TypeCatalog> types() const override { return parts_.types.types(); }
  Status reload_types(Stores& stores) override { return parts_.types.reload(stores); }
  void mirror_types(std::function<void()> done) override { parts_.types.mirror_to_all(std::move(done)); }
  Status make_types_known(Stores& stores) override { return parts_.types.mirror_to(stores); }
  std::optional<Error> check_handler(const BizType& type) const override { return parts_.handlers.check(type); }
  int shards() const override { return shards_; }
  std::string node_name() const override { return node_name_; }
  WallTime now() const override;
  LatencySummary lateness() const override { return parts_.metrics.lateness(); }
  Readiness readiness() const override { return parts_.status.readiness(); }
  std::string metrics_text() const override { return parts_.metrics.text(); }
  std::string hold_reason(const Job& job) const override;
  std::optional<int> running(TypeId type) const override;
  std::vector<NodeInfo> nodes() const override { return parts_.status.nodes(); }
  std::vector<EndpointInfo> endpoints() const override { return parts_.status.endpoints(); }
  std::vector<MoveInfo> moves() const override { return parts_.status.moves(); }
  std::string shard_owner(Shard shard) const override { return parts_.status.shard_owner(shard); }
  std::vector<DatabaseId> database_ids() const override { return map_.ids(); }
  DatabaseId database_of(Shard shard) const override { return map_.database_of(shard); }
  std::string database_name(DatabaseId database_id) const override { return map_.name(database_id); }
  std::string database_title(DatabaseId database_id) const override { return map_.title(database_id); }
  std::optional<Error> unavailable_reason(DatabaseId database_id) const override {
    return map_.unavailable_reason(database_id);
  }
  bool is_answering(DatabaseId database_id) const override { return map_.is_answering(database_id); }

 private:
  // The next four send one request, and return as Backend::create(): false when the queue is full, and `done` is not
  // called. With several databases the two ..._until() functions repeat the request, until the time `until`, while its
  // shard may be moving: a create that is answered Error moved, a change that is answered `locked`. post_change() calls
  // change_until().
  bool create_until(MonoTime until, NewJob job, std::function<void(Result<CreateReply>)> done);
  template <class Request, class Reply>
  bool post_change(Shard shard, Request request, std::function<void(Result<Reply>)> done);
  template <class Request, class Reply>
  bool change_until(MonoTime until, Shard shard, Request request, std::function<void(Result<Reply>)> done,
                    bool is_retry);
  template <class Request, class Reply>
  bool post_lookup(Shard shard, Request request, std::function<void(Result<Reply>)> done);
  // Calls `send`, which sends a request about this job. If the reply says that there is no such job, waits until it can
  // be found (when_findable()) and calls `send` again.
  template <class Reply>
  bool send_and_look_again(JobId job, std::function<bool(std::function<void(Result<Reply>)>)> send,
                           std::function<void(Result<Reply>)> done);
  // check_homes() of these shards and the databases of the map, repeated until the time `until` while a shard has
  // moved.
  void check_homes_until(MonoTime until, std::vector<Shard> shards, std::function<void(Status)> done);
  Shard shard_of_query(const EntryQuery& query) const {
    return query.job_id != 0 ? shard_of(query.job_id) : shard_of(query.biz_id, shards_);
  }
  bool has_several_databases() const { return retry_queue_.has_value(); }
  // Requests a heartbeat, which reads the shard map, and calls `attempt` in about 20 ms, on the retry queue's thread.
  // False: `until` has passed or the queue is full; `attempt` is not called.
  bool queue_retry(MonoTime until, std::function<void()> attempt);

  const std::string node_name_;
  const int shards_;
  const NodeParts parts_;
  const DatabaseMap& map_;
  const Clock& clock_;
  std::optional<RetryQueue> retry_queue_;  // with several databases, between which shards may move
};

}  // namespace tocsin

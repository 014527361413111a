// NodeBackend: the Backend of the REST handlers and entry consumers. Sends each request about a job to the database of
// its shard, lease calls to the queue of waiting consumers, bulk and audit calls to their services; and answers
// questions about the node from its databases, membership and permits. One per node.
#pragma once

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <optional>

#include "api/backend.h"
#include "base/latest.h"
#include "base/mutex.h"
#include "delivery/handler_registry.h"
#include "entry/entry_consumer.h"
#include "metrics/metrics.h"
#include "multidb/retry_queue.h"
#include "node/database.h"
#include "node/membership.h"
#include "node/permits.h"
#include "node/type_publisher.h"
#include "service/audit_log.h"
#include "service/bulk_service.h"

namespace tocsin {

struct NodeState {
  std::string node_name;
  NodeId node_id = 0;
  Duration heartbeat_timeout{0};                     // nodes() calls a member lost that is silent for longer
  int shards = 0;                                    // of the installation
  std::map<DatabaseId, std::string> database_names;  // of all that are registered, this node's or not
};

// The overrides are described in api/backend.h. The data members that are references are parts of the node that
// requests need; they must outlive this object. Thread: any; the constructor, watch_entries(), stop_retries() and the
// destructor owner only.
class NodeBackend final : public Backend {
 public:
  // `map`: the shard map, as read from the control database at the start.
  NodeBackend(NodeState state, const Clock& clock, Metrics& metrics, HandlerRegistry& handlers,
              const Databases& databases, PollQueue& polls, Membership& membership, Permits& permits, BulkService& bulk,
              AuditLog& audit, const ShardMap& map);

  // `mine`: the shards that this node's engines scan from now on. `map`: in which database each shard lives.
  void take_shards(const std::vector<Shard>& mine, const ShardMap& map);
  // The time since the last scan of this node's shards, by database; the heartbeat reports it.
  std::vector<ScannedDatabase> scanned(MonoTime now) const;
  // Reads what has changed in `registry` (of the control database, on the caller's session) and publishes the types to
  // engines and API (node/type_publisher.h). Error: of the read.
  Status refresh_types(TypeStore& registry) { return types_.refresh(registry); }
  // How many due jobs of the type wait for a claim on this node, in all databases, for the permit renewer: those due
  // lately (`fresh`) and the older ones that the catch-up rate bounds (`late`). Of a pull type at most as many as its
  // waiting consumers ask for, all as `fresh`.
  Waiting waiting(TypeId type) const;
  void start_draining() { is_draining_ = true; }  // from now on readiness() says not ready
  // Replaces the warnings of a database: /readyz shows them, and the log has each change.
  void warn_of(DatabaseId database_id, const std::vector<std::string>& warnings);
  // Sets the entry topics that readiness() and endpoints() report. REQUIRES: before the first request.
  void watch_entries(std::vector<std::shared_ptr<const EntryState>> entries) { entries_ = std::move(entries); }
  // Tries the requests that wait for a moving shard once more and refuses later ones. Call before the databases stop.
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
  bool finish_leases(DatabaseId database_id, std::vector<FinishRequest> outcomes,
                     std::function<void(Result<std::vector<LeaseReply>>)> done) override {
    return at(database_id)->write_lease({OutcomesAsked{std::move(outcomes), std::move(done)}});
  }
  bool extend_leases(DatabaseId database_id, std::vector<Extension> extensions,
                     std::function<void(Result<std::vector<ExtendReply>>)> done) override {
    return at(database_id)->write_lease({ExtensionsAsked{std::move(extensions), std::move(done)}});
  }
  bool lease(LeaseCall call) override;
  void note_ended(std::span<const Lease> leases) override { permits_.flow()->leases().settle(leases); }
  void note_extended(TypeId type, std::span<const Lease> leases, Duration ttr) override;
  bool are_leases_counted(TypeId type) const override { return permits_.flow()->is_counted(type, clock_.now()); }
  void count(Counter what, std::int64_t n) override { metrics_.count(what, n); }
  bool post(DatabaseId database_id, std::function<void(Stores&)> work) override {
    return at(database_id)->post(std::move(work));
  }
  bool post_read(DatabaseId database_id, std::function<void(Stores&)> work) override {
    return at(database_id)->post_read(std::move(work));
  }
  bool post_waiting(DatabaseId database_id, std::function<void(Stores&)> work) override {
    return at(database_id)->post_waiting(std::move(work));
  }
  bool post_bulk(std::function<void(BulkAccess&)> work) override { return bulk_.post(std::move(work)); }
  void record(AuditEntry entry) override { audit_.record(std::move(entry)); }
  void hint(JobId job, TypeId type, WallTime fire_at) override;
  std::shared_ptr<const TypeCatalog> types() const override { return types_.types(); }
  Status reload_types(Stores& stores) override;
  void mirror_types(std::function<void()> done) override;
  Status make_types_known(Stores& stores) override;
  std::optional<Error> check_handler(const BizType& type) const override { return handlers_.check(type); }
  int shards() const override { return state_.shards; }
  std::string node_name() const override { return state_.node_name; }
  WallTime now() const override;
  LatencySummary lateness() const override { return metrics_.lateness(); }
  Readiness readiness() const override;
  std::string metrics_text() const override { return metrics_.text(); }
  std::string hold_reason(const Job& job) const override;
  std::optional<int> running(TypeId type) const override;
  std::vector<NodeInfo> nodes() const override;
  std::vector<EndpointInfo> endpoints() const override;
  std::vector<MoveInfo> moves() const override;
  std::string shard_owner(Shard shard) const override;
  std::vector<DatabaseId> database_ids() const override;
  DatabaseId database_of(Shard shard) const override;
  std::string database_name(DatabaseId database_id) const override;
  std::string database_title(DatabaseId database_id) const override;
  std::optional<Error> unavailable_reason(DatabaseId database_id) const override;
  bool is_answering(DatabaseId database_id) const override;

 private:
  using ShardDatabases = std::vector<DatabaseId>;

  Database& control() const { return *databases_.front(); }
  // nullptr: the node was not started with this database. Calls that require in Backend that unavailable_reason() is
  // empty use the result without a check.
  Database* at(DatabaseId database_id) const {
    return database_id >= 0 && database_id < kMaxDatabases ? by_database_id_[static_cast<std::size_t>(database_id)]
                                                           : nullptr;
  }
  // These return as Backend's single requests: false when the queue is full, and `done` is not called. With several
  // databases create_until() and change_until() repeat a request while its shard may be moving, until `until`: a create
  // that is answered `moved`, a change that is answered `locked`. post_change() calls change_until().
  bool create_until(MonoTime until, NewJob job, std::function<void(Result<CreateReply>)> done);
  template <class Request, class Reply>
  bool post_change(Shard shard, Request request, std::function<void(Result<Reply>)> done);
  template <class Request, class Reply>
  bool change_until(MonoTime until, Shard shard, Request request, std::function<void(Result<Reply>)> done,
                    bool is_retry);
  template <class Request, class Reply>
  bool post_lookup(Shard shard, Request request, std::function<void(Result<Reply>)> done);
  // Queues another attempt in about 20 ms, and has the shard map read again. False: `until` has passed, or the queue is
  // full.
  bool queue_retry(MonoTime until, std::function<void()> attempt);
  void check_databases(Readiness& out) const;
  void check_map(Readiness& out) const;

  const NodeState state_;
  std::vector<std::shared_ptr<const EntryState>> entries_;
  const Clock& clock_;
  Metrics& metrics_;
  HandlerRegistry& handlers_;
  const Databases& databases_;
  std::array<Database*, kMaxDatabases> by_database_id_{};
  PollQueue& polls_;
  Membership& membership_;
  Permits& permits_;
  BulkService& bulk_;
  AuditLog& audit_;
  TypePublisher types_;
  mutable Mutex warnings_mutex_;
  std::map<DatabaseId, std::vector<std::string>> warnings_ TOCSIN_GUARDED_BY(warnings_mutex_);
  Latest<ShardDatabases> database_ids_;
  std::atomic<bool> is_draining_{false};
  std::optional<RetryQueue> retry_queue_;  // with several databases, between which shards may move
};

}  // namespace tocsin

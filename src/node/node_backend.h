// The node as the REST endpoints see it.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>

#include "api/backend.h"
#include "base/latest.h"
#include "delivery/handlers.h"
#include "node/coalescer.h"
#include "node/database_engine.h"
#include "node/hint_sender.h"
#include "node/membership.h"
#include "node/metrics.h"
#include "node/permits.h"
#include "node/work_pool.h"

namespace tocsin {

struct NodeState {
  std::string node_name;
  NodeId node_id = 0;
  Duration heartbeat_timeout{0};
  std::string database;
  int shards = 0;
  SessionConfig session;
  int db_pool = 4;
};

// Thread: any; the constructor, stop() and the destructor owner only.
class NodeBackend final : public Backend {
 public:
  NodeBackend(NodeState state, const Clock& clock, Metrics& metrics, HandlerRegistry& handlers, DatabaseEngine& engine,
              const Membership& membership, Permits& permits);
  ~NodeBackend() override;

  // Answers what has been accepted, then ends its threads.
  void stop();
  // Reads the registry and lets the engine and the API see it, unless somebody read it later and was faster.
  Status refresh_types(TypeStore& registry);
  // Written by housekeeping: when the database last answered it.
  void database_answered() { last_answer_ = clock_.now().time_since_epoch().count(); }
  void start_draining() { is_draining_ = true; }

  bool create(NewJob job, std::function<void(Result<CreateReply>)> done) override;
  bool cancel(JobId job, std::function<void(Result<CancelReply>)> done) override;
  bool lease(LeaseCall call) override;
  void count(Counter what, std::int64_t n) override { metrics_.count(what, n); }
  bool post(std::function<void(Stores&)> work) override;
  void hint(JobId job, TypeId type, WallTime fire_at) override;
  std::shared_ptr<const TypeCatalog> types() const override { return catalog_.get(); }
  void reload_types(Stores& stores) override;
  std::optional<Error> check_handler(const BizType& type) const override { return handlers_.check(type); }
  int shards() const override { return state_.shards; }
  std::string node_name() const override { return state_.node_name; }
  std::string database_name() const override { return state_.database; }
  WallTime now() const override;
  LatencySummary lateness() const override { return metrics_.lateness(); }
  Readiness readiness() const override;
  std::string metrics_text() const override { return metrics_.text(); }
  std::string hold_reason(const Job& job) const override;
  std::optional<int> running(TypeId type) const override;
  std::vector<NodeInfo> nodes() const override;
  std::string shard_owner(Shard shard) const override;

 private:
  void show_types(std::vector<BizType> types);

  struct Create {
    NewJob job;
    std::function<void(Result<CreateReply>)> done;
  };
  struct Cancel {
    JobId job;
    std::function<void(Result<CancelReply>)> done;
  };

  const NodeState state_;
  const Clock& clock_;
  Metrics& metrics_;
  HandlerRegistry& handlers_;
  DatabaseEngine& engine_;
  const Membership& membership_;
  Permits& permits_;
  Latest<TypeCatalog> catalog_;
  std::atomic<std::uint64_t> type_reads_{0};
  std::mutex types_mutex_;
  std::uint64_t types_shown_ = 0;  // guarded by types_mutex_
  std::atomic<MonoTime::rep> last_answer_{0};
  std::atomic<bool> is_draining_{false};
  WorkPool pool_;
  Coalescer<Create> creates_;
  Coalescer<Cancel> cancels_;
  HintSender hints_;
};

}  // namespace tocsin

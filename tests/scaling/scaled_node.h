// One node of a large simulated cluster: the real engine and membership, a fiber per stage, on tables in memory.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cluster/heartbeat.h"
#include "cluster/shard_owner.h"
#include "pipeline/engine.h"
#include "scaling/plain_table.h"
#include "support/fake_members.h"

namespace tocsin {

// What the nodes of one cluster share.
struct ScaledWorld {
  Scheduler& scheduler;
  PlainTable& table;
  FakeMembers& members;
  Statements& statements;
  PlainTable::OnFired on_fired;
  std::shared_ptr<const TypeCatalog> catalog;
  int shards;
};

// Thread: owner only.
class ScaledNode final : public EventSink {
 public:
  ScaledNode(ScaledWorld& world, NodeId id);
  ~ScaledNode() override;

  NodeId id() const { return id_; }
  // As `kill -9`; without its session when the host is gone silently.
  void crash(bool ends_session);
  // As SIGTERM: hands its shards over, then leaves.
  void leave();
  void members_changed();

  // EventSink
  void count(Counter, std::int64_t) override {}
  void started(TypeId, Duration) override {}
  void failed(std::string_view, const Error&) override {}

 private:
  class Loop;
  class Members;

  ScaledWorld& world_;
  const NodeId id_;
  std::vector<std::unique_ptr<PlainStore>> stores_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Members> heartbeat_store_, owner_store_;
  LatestView view_{nullptr};
  std::unique_ptr<Heartbeat> heartbeat_;
  std::unique_ptr<ShardOwner> owner_;
  std::vector<std::unique_ptr<Loop>> loops_;
};

}  // namespace tocsin

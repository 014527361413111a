// NodeStatus: what a node reports of itself and of the cluster: readiness, warnings, endpoints, nodes, shards and
// moves. NodeBackend answers /readyz and the lists of nodes and shards with it. Owned by the node (node_impl.h), one
// per node.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "api/backend.h"
#include "base/mutex.h"
#include "delivery/handler_registry.h"
#include "entry/entry_consumer.h"
#include "node/database_map.h"
#include "node/membership.h"

namespace tocsin {

struct NodeStatusConfig {
  NodeId node_id = 0;             // of this node
  Duration heartbeat_timeout{0};  // a member that is silent for longer is called lost
  int shards = 0;                 // of the whole installation
};

// Thread: any; but the constructor, watch_entries() and the destructor owner only (the thread that starts and stops the
// node).
class NodeStatus {
 public:
  // REQUIRES: all references outlive it.
  NodeStatus(NodeStatusConfig config, const Clock& clock, const HandlerRegistry& handlers, const DatabaseMap& map,
             const Membership& membership)
      : config_(config), clock_(clock), handlers_(handlers), map_(map), membership_(membership) {}

  void start_draining() { is_draining_ = true; }  // from now on readiness() says not ready
  // Replaces the warnings of a database, such as a wrong server setting. readiness() shows them; the log gets a line
  // for each new one, and for each that no longer holds.
  void warn_of(DatabaseId database_id, const std::vector<std::string>& warnings);
  // Sets the entry topics (topics of a broker whose messages become jobs) that readiness() and endpoints() report.
  // REQUIRES: before the first request.
  void watch_entries(std::vector<std::shared_ptr<const EntryState>> entries) { entries_ = std::move(entries); }
  // By database, the time since this node last scanned its shards there; the heartbeat reports it to the other nodes.
  std::vector<ScannedDatabase> scanned(MonoTime now) const;

  // As in Backend (api/backend.h).
  Readiness readiness() const;
  std::vector<EndpointInfo> endpoints() const;
  std::vector<NodeInfo> nodes() const;
  std::vector<MoveInfo> moves() const;
  std::string shard_owner(Shard shard) const;

 private:
  // Each adds the checks of one subject to `out`, and clears is_ready or sets is_degraded if a check fails.
  void check_databases(Readiness& out) const;
  void check_map(Readiness& out) const;
  void check_membership(Readiness& out) const;
  void check_shards(Readiness& out) const;
  void check_entries(Readiness& out) const;

  const NodeStatusConfig config_;
  const Clock& clock_;
  const HandlerRegistry& handlers_;
  const DatabaseMap& map_;
  const Membership& membership_;
  std::vector<std::shared_ptr<const EntryState>> entries_;
  std::atomic<bool> is_draining_{false};
  mutable Mutex warnings_mutex_;
  std::map<DatabaseId, std::vector<std::string>> warnings_ TOCSIN_GUARDED_BY(warnings_mutex_);
};

}  // namespace tocsin

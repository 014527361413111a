// ShardOwner: the stage that proposes new shard maps when members change, and applies the current map to this node.
//
// Every node computes the next map with assign_shards() from the current map and the members that it sees. The store
// accepts the first proposal for each version. Thread: owner only, except used_map() (any).
#pragma once

#include <atomic>
#include <functional>
#include <vector>

#include "base/stage.h"
#include "cluster/cluster_view.h"
#include "core/shard_assignment.h"
#include "ports/event.h"
#include "tocsin/shard.h"

namespace tocsin {

class ShardOwner final : public Stage {
 public:
  struct Hooks {
    // Called with this node's shards, in order, and the map (which says in which databases they live), when either has
    // changed.
    std::function<void(const std::vector<Shard>& mine, const ShardMap& map)> owned;
    std::function<void()> proposed;  // a proposal was written or lost: read the map again
  };
  ShardOwner(const ClusterConfig& config, MemberStore& store, LatestView& view, EventSink& events, Hooks hooks)
      : config_(config), store_(store), view_(view), events_(events), hooks_(std::move(hooks)) {}

  const char* name() const override { return "shard_owner"; }
  // Woken by the heartbeat after every reply.
  MonoTime step(MonoTime now) override;
  // Version of the map that the node was last told to work with; -1: none yet. Thread: any.
  std::int64_t used_map() const { return used_map_; }

 private:
  std::vector<Peer> peers(const ClusterView& view) const;

  const ClusterConfig config_;
  MemberStore& store_;
  LatestView& view_;
  EventSink& events_;
  const Hooks hooks_;
  std::vector<Shard> owned_;
  std::vector<DatabaseId> database_ids_;
  std::atomic<std::int64_t> used_map_{-1};
  std::shared_ptr<const ClusterView> judged_;  // the last view handled
};

}  // namespace tocsin

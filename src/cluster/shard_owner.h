// ShardOwner: a stage of the node as an owner of shards. It applies the shard map (which node scans which shard, and in
// which database the shard lives) to the node, and proposes the next map when members change. Owned by Membership
// (node/membership.h), which gives it a thread.
//
// The heartbeat puts what it has read, members and map, into `view` and wakes this stage. Every node computes the next
// map with assign_shards() from the current map and the members that it sees; of the proposals for one version the
// store accepts the first.
// Thread: owner only (the shard owner's loop thread), except applied() (any).
#pragma once

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
  // Called inside step().
  struct Hooks {
    // `mine`: the shards that this node scans from now on, in order. Called when these, or the databases of any shards
    // in the map, differ from the last call. Not called before this node has a shard or the map names databases.
    std::function<void(const std::vector<Shard>& mine, const ShardMap& map)> owned;
    std::function<void()> applied;   // after each call of `owned`, once applied() returns the view with that map
    std::function<void()> proposed;  // the store accepted this node's proposal, or another came first: read the map
  };
  ShardOwner(const ClusterConfig& config, MemberStore& store, LatestView& view, EventSink& events, Hooks hooks)
      : config_(config), store_(store), view_(view), events_(events), hooks_(std::move(hooks)) {}

  const char* name() const override { return "shard_owner"; }
  // Handles the view if it is a new one. Returns kWhenWoken: the heartbeat wakes the stage after every reply. A
  // proposal that fails is reported to `events`; the next heartbeat reads the stored map.
  MonoTime step(MonoTime now) override;
  // The view whose map was last applied to this node; null: none yet. Thread: any.
  std::shared_ptr<const ClusterView> applied() const { return applied_.get(); }

 private:
  // The members that may own shards: neither dead nor draining.
  std::vector<Peer> peers(const ClusterView& view) const;

  const ClusterConfig config_;
  MemberStore& store_;
  LatestView& view_;
  EventSink& events_;
  const Hooks hooks_;
  std::vector<Shard> owned_;              // this node's, as of the last call of `owned`
  std::vector<DatabaseId> database_ids_;  // by shard, as of the last call of `owned`
  LatestView applied_{nullptr};
};

}  // namespace tocsin

// This node's place in the cluster: heartbeat and shard owner, with their threads and connections.
#pragma once

#include "cluster/heartbeat.h"
#include "cluster/shard_owner.h"
#include "node/loop_thread.h"
#include "postgres/pg_member_store.h"

namespace tocsin {

// Thread: owner only, except request(), drain() and view() (any).
class Membership {
 public:
  struct Hooks {
    Heartbeat::Hooks heartbeat;
    std::function<void(const std::vector<Shard>& mine, const ShardMap& map)> owned;
    LoopThread::OnStep on_step;
  };
  Membership(const ClusterConfig& config, const SessionConfig& session, const Clock& clock, EventSink& events,
             Hooks hooks);
  ~Membership() { stop(); }

  void start() { heartbeat_loop_.start(), owner_loop_.start(); }
  // Somebody told that the members have changed.
  void request() { heartbeat_.request(); }
  // Gives up its shards; heartbeats go on.
  void drain() { heartbeat_.drain(); }
  // Ends the heartbeats, and leaves.
  void stop();

  // nullptr before the first heartbeat was answered.
  std::shared_ptr<const ClusterView> view() const { return view_.get(); }

 private:
  const ClusterConfig config_;
  EventSink& events_;
  Session heartbeat_session_, owner_session_;
  PgMemberStore heartbeat_store_, owner_store_;
  LatestView view_{nullptr};
  Heartbeat heartbeat_;
  ShardOwner owner_;
  LoopThread heartbeat_loop_, owner_loop_;
  bool is_stopped_ = false;
};

}  // namespace tocsin

// Runs the node's membership in the cluster: the stages Heartbeat, ShardOwner and (with several databases) MoveWatch,
// with their threads and connections to the control database.
#pragma once

#include "base/loop_thread.h"
#include "base/mutex.h"
#include "cluster/heartbeat.h"
#include "cluster/shard_owner.h"
#include "multidb/move_watch.h"
#include "postgres/pg_member_store.h"

namespace tocsin {

// Its data members are the stages, each with its session, store and thread, and what wait_until_replaced() waits for.
// Thread: owner only, except request(), drain(), view() and moves() (any).
class Membership {
 public:
  struct Hooks {
    std::function<std::vector<ScannedDatabase>(MonoTime now)> scanned;  // this and the next two: as Heartbeat::Hooks
    std::function<void(MonoTime)> lease_valid_until;
    std::function<void(bool)> alone;
    std::function<void(const std::vector<Shard>& mine, const ShardMap& map)> owned;  // the map or the shards changed
    LoopThread::OnStep on_step;
  };
  // `databases`: those of this node, the control database first.
  Membership(const ClusterConfig& config, const std::vector<OpenDatabase>& databases, const Clock& clock,
             EventSink& events, Hooks hooks);
  ~Membership() { stop(); }

  void start();
  // Beats at once: a notification said that the members have changed.
  void request() { heartbeat_.request(); }
  // Gives up its shards; continues to beat.
  void drain();
  // Waits until other nodes have its shards and, 200 ms later, scan them; or until no other member can take them.
  // False: not within `most`. REQUIRES: drain() was called.
  bool wait_until_replaced(Duration most);
  // Ends the heartbeats and leaves the cluster.
  void stop();

  // nullptr before the first heartbeat was answered.
  std::shared_ptr<const ClusterView> view() const { return view_.get(); }
  // Shards that are moving to another database, as read about a second ago; empty with a single database.
  std::vector<ShardMove> moves() const;

 private:
  void note_owned(bool owns_any);
  void note_view();
  bool has_successor() const;

  const ClusterConfig config_;
  EventSink& events_;
  Mutex mutex_;
  CondVar replaced_;
  bool owns_any_ TOCSIN_GUARDED_BY(mutex_) = false;  // shards
  bool had_any_ TOCSIN_GUARDED_BY(mutex_) = false;   // when it began to drain
  Session heartbeat_session_, owner_session_;
  PgMemberStore heartbeat_store_, owner_store_;
  LatestView view_{nullptr};
  Heartbeat heartbeat_;
  ShardOwner owner_;
  LoopThread heartbeat_loop_, owner_loop_;
  std::optional<MoveWatch> moves_;  // where shards can move
  std::optional<LoopThread> moves_loop_;
  bool is_stopped_ = false;
};

}  // namespace tocsin

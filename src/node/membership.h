// Membership: makes this node a member of the cluster. It owns three stages, each with a thread and sessions of its
// own: Heartbeat (reports this node and reads the others), ShardOwner (applies the shard map, and proposes a new one
// when members change) and, with several databases, MoveWatch (watches shards that move). Owned by the node
// (node_impl.h), which calls start(), and at its end drain(), wait_until_replaced() and stop().
#pragma once

#include "base/loop_thread.h"
#include "base/mutex.h"
#include "cluster/heartbeat.h"
#include "cluster/shard_owner.h"
#include "multidb/move_watch.h"
#include "postgres/pg_member_store.h"

namespace tocsin {

// The data members are the stages, each with its session, store and thread, and the state for which
// wait_until_replaced() waits. Thread: owner only (the one that starts and stops the node), except request_heartbeat(),
// drain(), view() and moves() (any).
class Membership {
 public:
  // `scanned`, `lease_valid_until` and `sole_member` are called on the heartbeat's thread and must not block.
  struct Hooks {
    // Returns how long ago this node last scanned each of its databases; the heartbeat reports it.
    std::function<std::vector<ScannedDatabase>(MonoTime now)> scanned;
    // Called after an answered heartbeat with the end of the membership lease: until then no other node scans this
    // node's shards. If the answer takes shards from this node, called only after this node has stopped scanning them.
    std::function<void(MonoTime)> lease_valid_until;
    // Called after each answered heartbeat: whether this node is the only live member.
    std::function<void(bool)> sole_member;
    // Called on the thread of ShardOwner when this node's shards, or the database of any shard, have changed. `mine`:
    // the shards that this node scans from now on, in order.
    std::function<void(const std::vector<Shard>& mine, const ShardMap& map)> owned;
    LoopThread::OnStep on_step;  // called after each step of a stage, on its thread, with the step's duration
  };
  // Connects to nothing; the stages connect in their steps. `databases`: this node's, the control database first.
  Membership(const ClusterConfig& config, const std::vector<OpenDatabase>& databases, const Clock& clock,
             EventSink& events, Hooks hooks);
  ~Membership() { stop(); }

  void start();
  // Requests a heartbeat at once: the members or the map may have changed.
  void request_heartbeat() { heartbeat_.request(); }
  // From now on this node takes no shards and gives up those it has; its heartbeats continue.
  void drain();
  // Waits until the new shard map gives this node no shards, and then 200 ms in which the new owners read the map and
  // begin to scan. Stops waiting when no other live member is left, or all others drain, too. False: after `most` this
  // node still has shards. REQUIRES: drain() was called.
  bool wait_until_replaced(Duration most);
  // Ends the stages' threads after their current steps. Then removes this node from the members; a failure is reported
  // to `events`. A second call does nothing.
  void stop();

  // nullptr before the first heartbeat was answered.
  std::shared_ptr<const ClusterView> view() const { return view_.get(); }
  // Moves of shards between databases, as MoveWatch read them about a second ago; empty with a single database.
  std::vector<ShardMove> moves() const;

 private:
  void note_owned(bool owns_any);  // after the hook `owned`; wakes wait_until_replaced()
  void note_view();                // after each answered heartbeat; wakes wait_until_replaced()
  void log_lease();                // logs that the lease has ended or returned; after each step of Heartbeat
  bool has_successor() const;      // another live member that does not drain

  const ClusterConfig config_;
  const Clock& clock_;
  EventSink& events_;
  Mutex mutex_;
  CondVar replaced_;
  bool owns_any_shard_ TOCSIN_GUARDED_BY(mutex_) = false;      // as of the last call of `owned`
  bool owned_any_at_drain_ TOCSIN_GUARDED_BY(mutex_) = false;  // when this node began to drain
  MonoTime lease_end_{};                                       // this and the next: of the heartbeat's thread only
  bool is_lease_lost_ = false;                                 // as it was logged last
  Session heartbeat_session_, owner_session_;
  PgMemberStore heartbeat_store_, owner_store_;
  LatestView view_{nullptr};
  Heartbeat heartbeat_;
  ShardOwner owner_;
  LoopThread heartbeat_loop_, owner_loop_;
  std::optional<MoveWatch> moves_;  // with several databases
  std::optional<LoopThread> moves_loop_;
  bool is_stopped_ = false;
};

}  // namespace tocsin

// Membership: makes a node a member of the cluster. It owns the stages Heartbeat, ShardOwner and (with several
// databases) MoveWatch, each with a thread and sessions of its own. A node makes one at its start and calls start(); at
// its end it calls drain(), wait_until_replaced(), and stop() last.
#pragma once

#include "base/loop_thread.h"
#include "base/mutex.h"
#include "cluster/heartbeat.h"
#include "cluster/shard_owner.h"
#include "multidb/move_watch.h"
#include "postgres/pg_member_store.h"

namespace tocsin {

// The data members are the stages, each with its session, store and thread, and what wait_until_replaced() waits for.
// Thread: owner only (the one that starts and stops the node), except request_heartbeat(), drain(), view() and moves()
// (any).
class Membership {
 public:
  // The first three are called on the heartbeat's thread and must not block.
  struct Hooks {
    // Returns how long ago this node last scanned each of its databases; the heartbeat reports it.
    std::function<std::vector<ScannedDatabase>(MonoTime now)> scanned;
    // Called after each answered heartbeat, once lost shards have been given up: the end of the membership lease.
    std::function<void(MonoTime)> lease_valid_until;
    // Called after each answered heartbeat: whether this is the only live member.
    std::function<void(bool)> sole_member;
    // The shards that this node scans from now on, in order. Called when these, or the databases of any shards in the
    // map, have changed, on the thread of ShardOwner.
    std::function<void(const std::vector<Shard>& mine, const ShardMap& map)> owned;
    LoopThread::OnStep on_step;  // called after each step of a stage, on its thread, with the step's duration
  };
  // Connects to nothing; the stages connect in their steps. `databases`: those of this node, the control database
  // first.
  Membership(const ClusterConfig& config, const std::vector<OpenDatabase>& databases, const Clock& clock,
             EventSink& events, Hooks hooks);
  ~Membership() { stop(); }

  void start();
  // Requests a heartbeat at once: the members or the map may have changed.
  void request_heartbeat() { heartbeat_.request(); }
  // From now on this node takes no shards and gives up those it has; its heartbeats continue.
  void drain();
  // Waits until the shard map gives this node no shards, plus 200 ms in which the new owners read the map and begin to
  // scan; or until every other live member is draining or gone. False: after `most` this node still has shards.
  // REQUIRES: drain() was called.
  bool wait_until_replaced(Duration most);
  // Ends the stages' threads, after the steps that run now, and removes this node from the members; a failure of that
  // is reported to `events`. May be repeated.
  void stop();

  // nullptr before the first heartbeat was answered.
  std::shared_ptr<const ClusterView> view() const { return view_.get(); }
  // Moves of shards between databases, as read about a second ago; empty with a single database.
  std::vector<ShardMove> moves() const;

 private:
  void note_owned(bool owns_any);  // by the hook `owned`; wakes wait_until_replaced()
  void note_view();                // after each answered heartbeat; wakes it, too
  void log_lease();                // its end and its return; after each step of the heartbeat
  bool has_successor() const;      // another live member that does not drain

  const ClusterConfig config_;
  const Clock& clock_;
  EventSink& events_;
  Mutex mutex_;
  CondVar replaced_;
  bool owns_any_shard_ TOCSIN_GUARDED_BY(mutex_) = false;      // shards, as of the last call of `owned`
  bool owned_any_at_drain_ TOCSIN_GUARDED_BY(mutex_) = false;  // shards, when it began to drain
  MonoTime lease_end_{};                                       // of the heartbeat's thread, as the next one
  bool is_lease_lost_ = false;                                 // as logged last
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

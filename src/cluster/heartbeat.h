// Heartbeat: the stage that keeps this node a member of the cluster. Owned by Membership (node/membership.h), which
// gives it a thread. Every ClusterConfig::interval() (1 s by default, up to twice that for a sole member) it writes the
// node's heartbeat to the control database, and reads all members and the shard map in the same call. It publishes them
// as the ClusterView that the shard owner and others use. A heartbeat that fails is repeated at once, then every
// ClusterConfig::retry_pause.
//
// Thread: owner only (the heartbeat's loop thread), except request(), note_applied() and drain() (any).
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "base/stage.h"
#include "base/waker.h"
#include "cluster/cluster_view.h"
#include "ports/event.h"

namespace tocsin {

// It has many data members because each heartbeat is judged by the ones before: by what was seen of each member, and by
// what the last reply said.
class Heartbeat final : public Stage {
 public:
  // Called on the heartbeat's thread; must not block.
  struct Hooks {
    // Returns how long ago this node scanned each database that it was started with; the heartbeat reports it.
    std::function<std::vector<ScannedDatabase>(MonoTime now)> scanned;
    // Called with the end of this node's membership lease. Until then the shards that this node works with are its own,
    // unless a map that it has not read yet gives them to others. Called after the answer that extends the lease. If
    // the map of the answer takes shards from this node, called after that map is applied.
    std::function<void(MonoTime)> lease_valid_until;
    // Returns the view whose shard map this node works with; null: none yet.
    std::function<std::shared_ptr<const ClusterView>()> applied;
    std::function<void(bool)> sole_member;  // called after each answer: whether this is the sole member
  };
  // REQUIRES: `store`, `view` and `events` outlive it; `store` is used by this stage only.
  Heartbeat(const ClusterConfig& config, MemberStore& store, LatestView& view, EventSink& events, Hooks hooks)
      : config_(config), store_(store), view_(view), events_(events), hooks_(std::move(hooks)) {}

  // `self`: the loop of this stage, which request(), note_applied() and drain() wake. `shard_owner`: the loop of the
  // shard owner, which every new view wakes. REQUIRES: before the first step.
  void set_wakers(Waker* self, Waker* shard_owner) { self_ = self, shard_owner_ = shard_owner; }

  const char* name() const override { return "heartbeat"; }
  MonoTime step(MonoTime now) override;

  // Makes the next heartbeat due now, because members or the map may have changed.
  void request();
  // The shard owner has applied other shards to this node. Wakes the stage, which may extend the lease now.
  void note_applied();
  // Reports this node as draining from now on, so that the next shard maps give its shards to others. Not undone.
  void drain();

 private:
  // How a member reaches one database, by the scans that it reports.
  struct SeenReach {
    bool is_reached = false;  // its last scan is more recent than ClusterConfig::reached_lately()
    bool was_lost = false;    // it has been out of reach before
    MonoTime since{};         // when is_reached last changed
  };
  // What this node has seen of one member. MonoTimes are of the local clock.
  struct Seen {
    WallTime heartbeat_at{};  // as in its row, by the database's clock
    MonoTime changed{};       // when heartbeat_at last changed
    MonoTime steady_since{};  // when it was first seen, or came back after ClusterConfig::long_silence()
    bool is_heard = false;    // heartbeat_at was seen to change; true of this node itself
    std::map<DatabaseId, SeenReach> reach;
  };

  // Calls lease_valid_until if the end is new and every shard that this node works with is its own by the latest map.
  void extend_lease();
  // Whether map `after` leaves this node every shard that it had in map `before`, in the same database.
  bool keeps_all(const ShardMap& before, const ShardMap& after) const;
  // Makes the next view from a reply, and updates seen_. May make next_ earlier.
  ClusterView take(BeatReply reply);
  // The databases that a member does not reach steadily; updates `seen`, its Seen::reach.
  std::map<DatabaseId, Reach> troubles_of(const Member& member, const std::vector<DatabaseId>& database_ids,
                                          MonoTime now, std::map<DatabaseId, SeenReach>& seen) const;

  const ClusterConfig config_;
  MemberStore& store_;
  LatestView& view_;
  EventSink& events_;
  const Hooks hooks_;
  Waker* self_ = nullptr;
  Waker* shard_owner_ = nullptr;
  std::map<NodeId, Seen> seen_;
  MonoTime next_{};                     // when the next heartbeat is due
  std::optional<MonoTime> lease_end_;   // new end of the lease, for lease_valid_until; nullopt: it was told
  bool is_drain_reported_ = false;      // the last answered heartbeat said that this node drains
  bool was_answered_ = true;            // whether the last heartbeat got an answer
  bool has_failed_since_view_ = false;  // a heartbeat has failed since the last view was made
  bool is_map_doubted_ = false;   // after a reconnect: the stored map of this version may differ from the known one
  std::uint64_t connection_ = 0;  // BeatReply::connection of the last reply
  std::atomic<bool> is_requested_{true};
  std::atomic<bool> is_draining_{false};
};

}  // namespace tocsin

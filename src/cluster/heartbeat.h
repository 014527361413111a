// Heartbeat: the stage that writes this node's heartbeat and reads the other members and the shard map.
//
// Thread: owner only, except request() and drain() (any).
#pragma once

#include <atomic>
#include <functional>
#include <map>

#include "base/stage.h"
#include "base/waker.h"
#include "cluster/cluster_view.h"
#include "ports/event.h"

namespace tocsin {

// Its data members are its collaborators, what it saw of each member, and what the last reply said.
class Heartbeat final : public Stage {
 public:
  // Called on the heartbeat's thread; must not block.
  struct Hooks {
    std::function<std::vector<ScannedDatabase>(MonoTime now)> scanned;  // a row per database that this node was given
    // The end of this node's membership lease: no other node takes its shards before.
    std::function<void(MonoTime)> lease_valid_until;
    std::function<std::int64_t()> used_map;  // version of the map that this node works with
    std::function<void(bool)> alone;         // whether this is the sole member
  };
  Heartbeat(const ClusterConfig& config, MemberStore& store, LatestView& view, EventSink& events, Hooks hooks)
      : config_(config), store_(store), view_(view), events_(events), hooks_(std::move(hooks)) {}

  // `self` is woken by request() and drain(), `shard_owner` by every reply. REQUIRES: before the first step.
  void set_wakers(Waker* self, Waker* shard_owner) { self_ = self, shard_owner_ = shard_owner; }

  const char* name() const override { return "heartbeat"; }
  MonoTime step(MonoTime now) override;

  // Requests a heartbeat at once: members or the map may have changed.
  void request();
  // From now on this node takes no shards and gives up those it has.
  void drain();

 private:
  struct SeenReach {
    bool is_reached = false;  // lately
    bool was_lost = false;
    MonoTime since{};
  };
  struct Seen {
    WallTime heartbeat_at{};
    MonoTime changed{};  // when it was seen to change
    MonoTime steady_since{};
    bool is_heard = false;
    std::map<DatabaseId, SeenReach> reach;
  };

  ClusterView take(BeatReply reply);
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
  MonoTime next_{};
  bool is_drain_reported_ = false;  // the last heartbeat said that this node drains
  bool was_answered_ = true;        // the last heartbeat
  bool was_unanswered_ = false;     // since the last view: a heartbeat failed
  bool is_map_doubted_ = false;     // after a reconnect: the stored map of this version may differ from the known one
  std::uint64_t connection_ = 0;    // of the last reply
  std::atomic<bool> is_requested_{true};
  std::atomic<bool> is_draining_{false};
};

}  // namespace tocsin

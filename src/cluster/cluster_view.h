// ClusterView: the members of the cluster and the shard map (which node owns which shard, and in which database the
// shard lives), as this node's last answered heartbeat read them. The heartbeat (cluster/heartbeat.h) publishes it as
// an immutable object; the shard owner, Membership and NodeStatus (src/node) read it. ClusterConfig: the time limits of
// membership. Thread: any, since both are values that do not change.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "base/latest.h"
#include "core/shard_assignment.h"
#include "ports/member_store.h"

namespace tocsin {

// All times follow from `timeout`; the comments give them for its default of 5 s. A member's silence is the time since
// its last heartbeat (SeenMember::silent_for). To be dead means that others may take the member's shards.
struct ClusterConfig {
  NodeId id = 0;  // of this node; so are name and version
  std::string name;
  std::string version;
  int shards = 1;                              // number of shards of the installation
  Duration timeout = std::chrono::seconds(5);  // from a node's death to the moment that others scan its shards
  Duration retry_pause = std::chrono::milliseconds(200);  // after a heartbeat that failed

  Duration interval() const { return timeout / 5; }  // time between heartbeats: 1 s
  // Time between heartbeats of a sole member (no other one is live) if all shards live in the control database: 2 s.
  // Shorter than long_silence(), so a new node hears this one before it may count it as dead. Shorter than trust(), so
  // the membership lease does not end. The listener also requests a heartbeat after each connect.
  Duration sole_member_interval() const { return 2 * interval(); }
  // A member silent for this long counts as dead: 4 s. The rest of the time-out is for the next heartbeat and the map.
  Duration patience() const { return timeout - interval(); }
  // Replaces patience() if the database session that wrote the member's last heartbeat has ended: 1.5 s. Not shorter: a
  // live node notices its lost connection with its next heartbeat, at most an interval after the last one, and connects
  // again at once. For a member that was not heard yet the limit is long_silence(): if this node was cut off, that
  // member may have been cut off with it, and return more slowly.
  Duration timeout_without_session() const { return interval() + timeout / 10; }
  // The silence after which a member is dead. Parameters: Member::is_connected and SeenMember::is_heard of the member.
  Duration patience_with(bool is_connected, bool is_heard) const {
    return is_connected ? patience() : is_heard ? timeout_without_session() : long_silence();
  }
  // A member that returns after this silence counts as new: 2.5 s. If this node got no answers for this long, or if its
  // last heartbeat failed, it counts every silence from its next answer. So an outage declares no member dead.
  Duration long_silence() const { return timeout / 2; }
  // A member silent for this long keeps its shards and gets none: 1.5 s.
  Duration hesitation() const { return timeout * 3 / 10; }
  // A member reaches a database if its last scan there is younger than this: 3 s. It scans once a second and reports
  // that with its heartbeat. Every live member is taken to reach the control database.
  Duration reached_lately() const { return interval() + 2 * kScanInterval; }
  // A member without a scan in a database for this long loses its shards there to others: 5 s. If that database is
  // down, no node scans it. Then all scans are older than reached_lately() before this time has passed, and no shard
  // moves.
  Duration out_of_reach() const { return std::max(timeout, reached_lately() + 2 * kScanInterval); }
  // A member gets shards in a database after it has reached the database for this long: 3 s. If it was out of reach
  // before, the time is steady_again(): 10 s, so that an unstable network does not move shards back and forth.
  Duration steady() const { return 3 * interval(); }
  Duration steady_again() const { return 2 * timeout; }
  // Length of this node's membership lease: 3.5 s, a little less than the silence after which others take its shards.
  // It is counted from the begin of an answered heartbeat whose map is applied. Without the lease the engine of the
  // control database scans and claims nothing.
  Duration trust() const { return patience() - timeout / 10; }

  static constexpr Duration kScanInterval = std::chrono::seconds(1);  // equal to EngineConfig::scan_interval
};

// A member as this node sees it. The times are of the local monotonic clock, so a step of the database's clock declares
// no member dead. Silence counts only while this node got answers.
struct SeenMember {
  Member member;
  Duration silent_for{0};  // from its last heartbeat to ClusterView::answered
  Duration steady_for{0};  // from its first heartbeat, or its return after long_silence(), to ClusterView::answered
  // Its heartbeat was seen to change; until then its row may be that of a dead node. Always true of this node itself.
  bool is_heard = false;
  std::map<DatabaseId, Reach> troubles;  // databases that the member does not reach steadily, for assign_shards()
};

inline bool is_dead(const SeenMember& seen, const ClusterConfig& config) {
  return seen.silent_for >= config.patience_with(seen.member.is_connected, seen.is_heard);
}

struct ClusterView {
  std::vector<SeenMember> members;  // by id, this node included
  ShardMap map;
  MonoTime answered{};  // when the reply to the heartbeat arrived
};

// Holds null before the first answered heartbeat. Thread: any.
using LatestView = Latest<ClusterView>;

}  // namespace tocsin

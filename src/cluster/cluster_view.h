// ClusterView: members and shard map as this node's last answered heartbeat read them. The heartbeat publishes it; the
// shard owner, Membership and NodeStatus read it. ClusterConfig: the time limits of membership.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "base/latest.h"
#include "core/shard_assignment.h"
#include "ports/member_store.h"

namespace tocsin {

// All times follow from `timeout`; the comments give them for its default. A member's silence is the time since its
// last heartbeat (SeenMember::silent_for).
struct ClusterConfig {
  NodeId id = 0;  // of this node, as its name and version
  std::string name;
  std::string version;
  int shards = 1;                              // of the installation
  Duration timeout = std::chrono::seconds(5);  // from a node's death to the moment that others scan its shards
  Duration retry_pause = std::chrono::milliseconds(200);  // after a heartbeat that failed

  Duration interval() const { return timeout / 5; }  // between heartbeats: 1 s
  // Between heartbeats of a sole member with all shards in the control database: 2 s. Shorter than long_silence(), so a
  // new node hears this one before it may count it as dead, and shorter than trust(). The listener also requests a
  // heartbeat after each connect.
  Duration sole_member_interval() const { return 2 * interval(); }
  // A member silent for this long counts as dead: 4 s. The rest of the time-out is for the next heartbeat and the map.
  Duration patience() const { return timeout - interval(); }
  // Replaces patience() if the session that wrote the member's last heartbeat has ended: 1.5 s. Not shorter: a live
  // node notices its lost connection with the next heartbeat, an interval after the last one at the latest, and
  // connects again at once. For a member that is not heard it is long_silence(): if this node was cut off, that member
  // may have been cut off with it, and return more slowly.
  Duration timeout_without_session() const { return interval() + timeout / 10; }
  // The silence after which a member is dead, by Member::is_connected and SeenMember::is_heard.
  Duration patience_with(bool is_connected, bool is_heard) const {
    return is_connected ? patience() : is_heard ? timeout_without_session() : long_silence();
  }
  // A member that returns after this silence counts as new: 2.5 s. A node that got no answers for this long, or whose
  // last heartbeat failed, counts every silence from its next answer, so an outage declares no member dead.
  Duration long_silence() const { return timeout / 2; }
  // A member silent for this long keeps its shards and gets none: 1.5 s.
  Duration hesitation() const { return timeout * 3 / 10; }
  // A member reaches a database if its last scan there is younger: 3 s. It scans once a second and reports that with
  // its heartbeat. The control database counts as reached by every live member.
  Duration reached_lately() const { return interval() + 2 * kScanInterval; }
  // A member without a scan for this long loses its shards in that database to others: 5 s. If the database is down, no
  // node scans it, and all scans are older than reached_lately() before this time has passed; then no shard moves.
  Duration out_of_reach() const { return std::max(timeout, reached_lately() + 2 * kScanInterval); }
  // A member gets shards in a database after it has reached it for this long: 3 s; 10 s (steady_again) if it was out of
  // reach before, so that an unstable network does not move shards back and forth.
  Duration steady() const { return 3 * interval(); }
  Duration steady_again() const { return 2 * timeout; }
  // Length of this node's membership lease, from the begin of an answered heartbeat whose map is applied: 3.5 s, a
  // little less than the silence after which others take its shards. Without it the engine of the control database
  // scans and claims nothing.
  Duration trust() const { return patience() - timeout / 10; }

  static constexpr Duration kScanInterval = std::chrono::seconds(1);  // equal to EngineConfig::scan_interval
};

// A member as this node sees it. Times are of the local monotonic clock, so a step of the database's clock declares no
// member dead, and silence counts only while this node got answers.
struct SeenMember {
  Member member;
  Duration silent_for{0};  // at ClusterView::answered: since its last heartbeat
  Duration steady_for{0};  // the same: since it was first seen, or returned after long_silence()
  // Its heartbeat was seen to change; until then its row may be that of a dead node. Always true of this node itself.
  bool is_heard = false;
  std::map<DatabaseId, Reach> troubles;  // databases that it does not reach steadily, for assign_shards()
};

inline bool is_dead(const SeenMember& seen, const ClusterConfig& config) {
  return seen.silent_for >= config.patience_with(seen.member.is_connected, seen.is_heard);
}

struct ClusterView {
  std::vector<SeenMember> members;  // by id, this node included
  ShardMap map;
  MonoTime answered{};  // when the reply to the heartbeat arrived
};

// Null before the first answered heartbeat. Thread: any.
using LatestView = Latest<ClusterView>;

}  // namespace tocsin

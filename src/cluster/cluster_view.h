// ClusterView: what this node knows of its cluster, written by the heartbeat. ClusterConfig: the time-outs of
// membership.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/latest.h"
#include "core/shard_assignment.h"
#include "ports/member_store.h"

namespace tocsin {

struct ClusterConfig {
  NodeId id = 0;
  std::string name;
  std::string version;
  int shards = 1;                              // of the installation
  Duration timeout = std::chrono::seconds(5);  // from a node's death to the moment that others scan its shards
  Duration retry_pause = std::chrono::milliseconds(200);  // after a heartbeat that failed

  Duration interval() const { return timeout / 5; }  // between heartbeats
  // The same for a sole member. It is shorter than long_silence(), so a new node hears this one before it judges it,
  // and shorter than trust(). The listener also requests a heartbeat when it loses its connection.
  Duration interval_alone() const { return 2 * interval(); }
  // A node silent for longer counts as dead. The rest of the time-out is for the next heartbeat and the new map.
  Duration patience() const { return timeout - interval(); }
  // The same if the session that wrote the last heartbeat has ended, too. Not shorter: a live node notices its lost
  // connection with the next heartbeat, an interval after the last one at the latest, and connects again at once. If
  // this node itself was cut off, members not heard since then may have been cut off with it, and return more slowly.
  Duration timeout_without_session() const { return interval() + timeout / 10; }
  Duration patience_with(bool is_connected, bool is_heard) const {
    return is_connected ? patience() : is_heard ? timeout_without_session() : long_silence();
  }
  // After this silence a member counts as new. A node that got no answers for this long declares no member dead.
  Duration long_silence() const { return timeout / 2; }
  // After this time without a heartbeat a member keeps its shards and is given no more.
  Duration hesitation() const { return timeout * 3 / 10; }
  // A member that scanned a database within this time reaches it: it scans once a second and reports that with its
  // heartbeat.
  Duration reached_lately() const { return interval() + 2 * kScanInterval; }
  // After this time without a scan, a member's shards in that database go to others. If the database is down, no node
  // scans it, and all scans are older than reached_lately() before this time has passed; then no shard moves.
  Duration out_of_reach() const { return std::max(timeout, reached_lately() + 2 * kScanInterval); }
  // A member must reach a database for this long before it gets shards there: steady_again() if it failed to reach it
  // before, so that an unstable network does not move shards back and forth.
  Duration steady() const { return 3 * interval(); }
  Duration steady_again() const { return 2 * timeout; }
  // A node stops scanning when its last answered heartbeat began this long ago: a little before the others act on its
  // silence.
  Duration trust() const { return patience() - timeout / 10; }

  static constexpr Duration kScanInterval = std::chrono::seconds(1);  // as EngineConfig's
};

// A member as this node sees it. Times are of the local monotonic clock, so a step of the database's clock declares no
// member dead, and silence counts only while this node got answers.
struct SeenMember {
  Member member;
  Duration silent_for{0};  // since its last heartbeat, as seen from here
  Duration steady_for{0};  // since it joined, or was last silent for long
  bool is_heard = false;   // its heartbeat was seen to change; until then its row may be that of a dead node
  std::map<DatabaseId, Reach> troubles;  // databases that it does not reach steadily (Peer)
};

inline bool is_dead(const SeenMember& seen, const ClusterConfig& config) {
  return seen.silent_for >= config.patience_with(seen.member.is_connected, seen.is_heard);
}

struct ClusterView {
  std::vector<SeenMember> members;  // by id, this node included
  ShardMap map;
  MonoTime answered{};  // when the store's answer arrived
};

// Thread: any.
using LatestView = Latest<ClusterView>;

}  // namespace tocsin

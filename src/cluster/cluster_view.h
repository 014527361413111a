// What this node knows of its cluster: written by the heartbeat, read by everybody.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/latest.h"
#include "core/shard_assignment.h"
#include "tocsin/member_store.h"

namespace tocsin {

struct ClusterConfig {
  NodeId id = 0;
  std::string name;
  std::string version;
  int shards = 1;
  Duration timeout = std::chrono::seconds(5);  // from a node's death to the moment that others scan its shards
  Duration retry_pause = std::chrono::milliseconds(200);

  Duration interval() const { return timeout / 5; }
  // Without others to watch it. Less than the silence that anybody who comes grants one whom it never heard, and than
  // its own trust; a connection that is lost is noticed by the listener, too, which asks for a beat.
  Duration interval_alone() const { return 2 * interval(); }
  // So long silent, and a node counts as dead; a beat and what it leads to take their time.
  Duration patience() const { return timeout - interval(); }
  // When the session that wrote the last heartbeat is gone too. No less: who lives notices with the next heartbeat, at
  // the latest an interval after the last one, that its connection is lost, and makes another at once. Who was not
  // heard since this node itself was cut off may have been so, too, and be slower to come back.
  Duration timeout_without_session() const { return interval() + timeout / 10; }
  Duration patience_with(bool is_connected, bool is_heard) const {
    return is_connected ? patience() : is_heard ? timeout_without_session() : long_silence();
  }
  // Who was silent for so long is as good as new; who heard nothing for so long judges nobody.
  Duration long_silence() const { return timeout / 2; }
  // So long without a heartbeat it has missed one: it keeps its shards and is given none.
  Duration hesitation() const { return timeout * 3 / 10; }
  // Who has scanned a database so lately reaches it: every second a scan, and with the next heartbeat the others know.
  Duration reached_lately() const { return interval() + 2 * kScanInterval; }
  // So long without a scan, and its shards there are for others. When nobody reaches it the last ones to scan it are
  // not taken for the only ones who do: they are no longer "lately" by then.
  Duration out_of_reach() const { return std::max(timeout, reached_lately() + 2 * kScanInterval); }
  // So long it reaches a database before it gets shards there: the second after it did not, that a wire which comes and
  // goes moves nothing to and fro.
  Duration steady() const { return 3 * interval(); }
  Duration steady_again() const { return 2 * timeout; }
  // It stops by itself a little before the others act on its silence.
  Duration trust() const { return patience() - timeout / 10; }

  static constexpr Duration kScanInterval = std::chrono::seconds(1);  // as EngineConfig's
};

// A member as this node has watched it, by its own monotonic clock: a step of the database's clock kills nobody, and
// silence counts only while this node could hear.
struct SeenMember {
  Member member;
  Duration silent_for{0};           // since its heartbeat was seen to change
  Duration steady_for{0};           // since it joined, or was last silent for long
  bool is_heard = false;            // its heartbeat was seen to change: before that it may have been dead for an hour
  std::map<Place, Reach> troubles;  // as Peer's
};

inline bool is_dead(const SeenMember& seen, const ClusterConfig& config) {
  return seen.silent_for >= config.patience_with(seen.member.is_connected, seen.is_heard);
}

struct ClusterView {
  std::vector<SeenMember> members;  // by id, this node included
  ShardMap map;
  MonoTime answered{};
};

// Thread: any.
using LatestView = Latest<ClusterView>;

}  // namespace tocsin

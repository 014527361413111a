// FakeMembers: the heartbeats of nodes and the shard map (which node owns a shard, which database holds it), in memory.
// Part of FakeDatabase; its methods are the calls of MemberStore (ports/member_store.h).
#pragma once

#include <algorithm>
#include <functional>
#include <map>

#include "ports/member_store.h"

namespace tocsin {

// Thread: owner only.
class FakeMembers {
 public:
  std::function<void()> on_notify;  // called in place of NOTIFY tocsin_member

  BeatReply beat(const Beat& beat, WallTime now) {
    Row& own = rows_[beat.id];
    own.member = {beat.id, beat.name, beat.version, beat.is_draining, now, Duration(0), beat.scanned, true};
    BeatReply reply;
    reply.connection = own.connections;
    for (const auto& [id, row] : rows_) {
      Member& member = reply.members.emplace_back(row.member);
      member.heartbeat_age = std::max(Duration(0), now - member.heartbeat_at);
      for (ScannedDatabase& each : member.scanned)
        if (each.age) *each.age += member.heartbeat_age;
    }
    if (beat.known_map != map_.version) reply.map = map_;
    if (beat.wakes_others) notify();
    return reply;
  }
  bool replace_map(std::int64_t known, const std::vector<NodeId>& owners) {
    if (map_.version != known) return false;
    map_ = {known + 1, owners, map_.database_ids};
    notify();
    return true;
  }
  void leave(NodeId id) {
    rows_.erase(id);
    notify();
  }

  // The session in which this node wrote its last heartbeat has ended.
  void end_session(NodeId id) {
    const auto row = rows_.find(id);
    if (row == rows_.end()) return;
    row->second.member.is_connected = false;
    ++row->second.connections;
  }
  void set_database_ids(std::vector<DatabaseId> database_ids) {
    map_ = {map_.version + 1, map_.owners, std::move(database_ids)};
    notify();
  }
  const ShardMap& map() const { return map_; }

 private:
  struct Row {
    Member member;
    std::uint64_t connections = 0;
  };
  void notify() const {
    if (on_notify) on_notify();
  }

  std::map<NodeId, Row> rows_;
  ShardMap map_;
};

}  // namespace tocsin

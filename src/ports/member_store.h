// MemberStore: the cluster's membership and the shard map (which node scans which shard), in the control database. The
// heartbeat calls beat(), the shard owner replace_map(), a node that stops leave(). Implemented by PgMemberStore
// (src/postgres) and FakeMemberStore (tests/support); tests/contract runs one suite on both.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tocsin/clock.h"
#include "tocsin/error.h"
#include "tocsin/shard.h"

namespace tocsin {

// A positive random number, drawn at process start: a restart under an old name is a new node. 0: no node.
using NodeId = std::int64_t;

// When a node last scanned one of the databases that it was started with.
struct ScannedDatabase {
  DatabaseId database_id = 0;
  std::optional<Duration> age;  // since the node's last scan of all its shards there; nullopt: none yet
};

struct Member {
  NodeId id = 0;
  std::string name;  // only a label
  std::string version;
  bool is_draining = false;              // leaving: gets no shards, and loses those it has
  WallTime heartbeat_at{};               // by the database's clock; changes with every heartbeat
  Duration heartbeat_age{0};             // not negative
  std::vector<ScannedDatabase> scanned;  // by its last heartbeat; the ages include the time since then
  bool is_connected = true;              // the database session of its last heartbeat still exists, or may exist
};

// Replaced as a whole; `version` grows by one each time.
struct ShardMap {
  std::int64_t version = 0;
  std::vector<NodeId> owners;            // by shard; empty before the first assignment
  std::vector<DatabaseId> database_ids;  // by shard: the database it lives in; missing entries: the control database

  DatabaseId database_of(Shard shard) const {
    const auto at = static_cast<std::size_t>(shard);
    return at < database_ids.size() ? database_ids[at] : 0;
  }
  bool is_all_in_control() const {
    return std::ranges::all_of(database_ids, [](DatabaseId database_id) { return database_id == 0; });
  }
};

// What a node reports with a heartbeat; see Member.
struct Beat {
  NodeId id = 0;
  std::string name;
  std::string version;
  bool is_draining = false;
  std::vector<ScannedDatabase> scanned;
  std::int64_t known_map = -1;  // version of the map that the node has read; -1: none
  std::int64_t used_map = -1;   // version that the node works with: a shard move waits for it; -1: none
  bool wakes_others = false;    // notify the other nodes at once: this node is new, or begins to drain
};

struct BeatReply {
  std::vector<Member> members;   // this node's own row included, by id
  std::optional<ShardMap> map;   // set if its version differs from known_map; read at the same moment as members
  MonoTime asked{}, answered{};  // the local clock before the request and after the reply
  // Number of the session's connection. Another number than before may mean another server, without the last commits.
  std::uint64_t connection = 0;
};

// Thread: owner only (each thread has its own).
class MemberStore {
 public:
  virtual ~MemberStore() = default;
  // Writes this node's heartbeat and reads all members. Safe to repeat.
  virtual Result<BeatReply> beat(const Beat& beat) = 0;
  // If `known` is the stored version: stores `owners` as version known + 1, keeps the shards' databases, and notifies
  // the other nodes. False: another version is stored; nothing was changed. Error in_doubt: read the map again.
  virtual Result<bool> replace_map(std::int64_t known, const std::vector<NodeId>& owners) = 0;
  // Removes this node's row and notifies the others. Safe to repeat.
  virtual Status leave(NodeId id) = 0;
};

}  // namespace tocsin

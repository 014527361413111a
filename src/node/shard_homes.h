// check_homes(): whether a node finds the jobs of a shard where it looks for them. After a move its shard map may be
// old for a heartbeat, and what was created since the move is in the new database only (ADR 0021).
//
// A shard lives in a database that accepts its jobs. While it moves it lives nowhere for a moment. No job is created
// then, and both databases of the move keep a record of it.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "node/database_map.h"

namespace tocsin {

// A shard, and the database in which a request looks for its jobs.
struct ShardHome {
  Shard shard;
  DatabaseId database_id;
};

// What databases said when they were asked; nullopt: it did not answer.
using ToldShards = std::map<DatabaseId, std::optional<ShardsHere>>;

// Unit: each shard lives in its home, or its home is one of the two databases between which it moves, and it does not
// live in the other. Error moved: a shard lives elsewhere, or maybe. Error conflict with field kInOutbox: a home did
// not answer.
Status judge_homes(std::span<const ShardHome> homes, const ToldShards& told);

// Asks the homes and, for shards that move, the other databases of the moves; calls `done` once with what judge_homes()
// says, on any thread, the caller's included. A home that is known not to answer is left out: a request for it fails
// anyway. Thread: any.
void check_homes(const DatabaseMap& map, std::vector<ShardHome> homes, std::function<void(Status)> done);

}  // namespace tocsin

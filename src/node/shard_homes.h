// check_homes(): whether a node finds the jobs of a shard where it looks for them. After a move its shard map may be
// old for a heartbeat, and what was created since the move is in the new database only (ADR 0021).
//
// A shard lives in a database that accepts its jobs. While it moves it lives nowhere for a moment; no job is created
// then, and the database of the map, old or new, has all of them.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "node/database_map.h"

namespace tocsin {

// A shard, and the database in which a request looks for its jobs.
struct ShardHome {
  Shard shard;
  DatabaseId database_id;
};

// What the databases said when they were asked together, one `nullopt` for each that did not answer. Unit: each home
// has all jobs of its shard. Error moved: another database, or maybe one that did not answer, has a shard that its home
// has not. Error conflict with field kInOutbox: a home did not answer.
struct ShardsOfDatabase {
  DatabaseId database_id;
  std::optional<ShardSet> shards;
};
Status judge_homes(std::span<const ShardHome> homes, std::span<const ShardsOfDatabase> databases);

// Asks the homes for their shards and, unless they have them, all databases together; calls `done` once with what
// judge_homes() says, on any thread, the caller's included. A home that is known not to answer is left out: a request
// for it fails anyway. Thread: any.
void check_homes(const DatabaseMap& map, std::vector<ShardHome> homes, std::function<void(Status)> done);

}  // namespace tocsin

// DatabaseMap: the databases of a node by number, and the database in which each shard (a slice of all jobs, by hash)
// lives. Requests, engines and handlers ask it where a job is. Owned by the node (node_impl.h), one per node.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/latest.h"
#include "node/database.h"

namespace tocsin {

// The databases of this node, the control database first.
using Databases = std::vector<std::unique_ptr<Database>>;

// Thread: any; but constructor and destructor owner only (the thread that starts and stops the node).
class DatabaseMap {
 public:
  // `names`: of all registered databases, also of those that this node was not started with. `map`: the shard map
  // (owner node and database of each shard), as read from the control database at the start. REQUIRES: `databases` is
  // complete, and outlives it.
  DatabaseMap(const Databases& databases, std::map<DatabaseId, std::string> names, const ShardMap& map);

  // Sets the shards of every Database; called when the shard map has changed. `mine`: the shards that this node scans
  // from now on. `map`: the database of each shard.
  void set_shards(const std::vector<Shard>& mine, const ShardMap& map);

  const Databases& all() const { return databases_; }
  Database& control() const { return *databases_.front(); }
  // nullptr: the node was not started with this database.
  Database* at(DatabaseId database_id) const {
    return database_id >= 0 && database_id < kMaxDatabases ? by_id_[static_cast<std::size_t>(database_id)] : nullptr;
  }
  std::vector<DatabaseId> ids() const;  // of this node's databases, the control database (0) first
  // The database in which this shard's jobs are, as far as this node knows. This node may have been started without it:
  // then at() returns nullptr.
  DatabaseId database_of(Shard shard) const;
  // Databases that have shards in the map, but that this node was not started with; each with its number of shards.
  std::map<DatabaseId, int> unknown() const;
  std::string name(DatabaseId database_id) const;   // as registered; "number 7" if unknown
  std::string title(DatabaseId database_id) const;  // "name (host:port/database)", for messages
  // As in Backend (api/backend.h).
  std::optional<Error> unavailable_reason(DatabaseId database_id) const;
  bool is_answering(DatabaseId database_id) const;

 private:
  using ByShard = std::vector<DatabaseId>;

  const Databases& databases_;
  const std::map<DatabaseId, std::string> names_;
  std::array<Database*, kMaxDatabases> by_id_{};
  Latest<ByShard> by_shard_;
};

}  // namespace tocsin

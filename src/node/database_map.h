// DatabaseMap: the databases of a node by number, and in which of them each shard lives. Requests, engines and handlers
// ask it where a job is. One per node.
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

// Thread: any; constructor and destructor owner only.
class DatabaseMap {
 public:
  // `names`: of all databases that are registered, this node's or not. `map`: the shard map, as read from the control
  // database at the start. REQUIRES: `databases` is complete, and outlives it.
  DatabaseMap(const Databases& databases, std::map<DatabaseId, std::string> names, const ShardMap& map);

  // `mine`: the shards that this node's engines scan from now on. `map`: in which database each shard lives.
  void take_shards(const std::vector<Shard>& mine, const ShardMap& map);

  const Databases& all() const { return databases_; }
  Database& control() const { return *databases_.front(); }
  // nullptr: the node was not started with this database.
  Database* at(DatabaseId database_id) const {
    return database_id >= 0 && database_id < kMaxDatabases ? by_id_[static_cast<std::size_t>(database_id)] : nullptr;
  }
  std::vector<DatabaseId> ids() const;  // of this node's databases, the control database (0) first
  // The database of this shard's jobs, as this node knows it; it may be one that the node was not started with.
  DatabaseId of(Shard shard) const;
  // Databases that the shard map names and this node was not started with, each with its number of shards.
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

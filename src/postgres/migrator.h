// Creates and upgrades the schema of a database, and refuses schemas that this binary does not know. `tocsin migrate`
// calls migrate(); check_installation() is called when a node starts and by DatabaseCheck. Thread: the session's owner.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "postgres/session.h"

namespace tocsin {

// Applies all migrations that the database has not recorded, in one transaction. Returns how many.
//  - `shards`: 1..kMaxShards, the shard count of a new installation; absent: kDefaultShards. For an existing
//    installation it must be absent or equal.
//  - `on_step`: called with the name of each migration, before the commit.
//  - Error invalid: the schema is newer than this binary or older than 0.1.0, the shard count differs, or the encoding
//    is not UTF-8.
//  - Error conflict: another transaction, such as another migration, holds a lock for over a minute.
// REQUIRES: SessionConfig::statement_timeout_ms = 0; otherwise a migration that takes longer ends in doubt.
Result<int> migrate(Session& session, std::optional<int> shards,
                    const std::function<void(const std::string&)>& on_step);

struct Installation {
  int shards = 0;
  int schema_version = 0;
};

// Reads and checks the schema. Error invalid: there is none, its version is not this binary's, its shard count is not
// `expected_shards`, or the server has fsync off and so may lose acknowledged jobs.
Result<Installation> check_installation(Session& session, std::optional<int> expected_shards);

}  // namespace tocsin

// Creates and upgrades the schema, and refuses schemas that this binary does not know.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "postgres/session.h"

namespace tocsin {

// Applies every migration that is not recorded yet, under a lock, all in one transaction. `shards`: 1..kMaxShards, sets
// the shard count of a new installation (default kDefaultShards); later it must be absent or equal. Calls `on_step`
// with the name of each migration applied. Returns their number. Error invalid: newer schema than this binary, a schema
// from before 0.1.0, another shard count, encoding not UTF-8.
Result<int> migrate(Session& session, std::optional<int> shards,
                    const std::function<void(const std::string&)>& on_step);

struct Installation {
  int shards = 0;
  int schema_version = 0;
};

// Reads the installed version and checks it. Error invalid: no schema, an older or newer one, one from before 0.1.0, a
// shard count other than `expected_shards`, or a server with fsync off, which may lose acknowledged jobs.
Result<Installation> check_installation(Session& session, std::optional<int> expected_shards);

}  // namespace tocsin

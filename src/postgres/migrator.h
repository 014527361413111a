// Creates and upgrades the schema, and refuses schemas that this binary does not know. Called by `tocsin migrate` and
// when a node starts. Thread: that of the session.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "postgres/session.h"

namespace tocsin {

// Applies every migration that is not recorded yet, in one transaction, and returns how many. `shards`: 1..kMaxShards,
// sets the shard count of a new installation (absent: kDefaultShards); later it must be absent or equal. Calls
// `on_step` with the name of each migration, before the commit. Error invalid: newer schema than this binary, a schema
// from before 0.1.0, another shard count, encoding not UTF-8. Error conflict: another transaction, such as a migration,
// holds a lock for over a minute. REQUIRES: SessionConfig::statement_timeout_ms = 0; otherwise a migration that takes
// longer ends in doubt.
Result<int> migrate(Session& session, std::optional<int> shards,
                    const std::function<void(const std::string&)>& on_step);

struct Installation {
  int shards = 0;
  int schema_version = 0;
};

// Reads what is installed and checks it. Error invalid: no schema, an older or newer one, one from before 0.1.0, a
// shard count other than `expected_shards`, or a server with fsync off, which may lose acknowledged jobs.
Result<Installation> check_installation(Session& session, std::optional<int> expected_shards);

}  // namespace tocsin

// Opens the databases that an operator named: identifies each, and checks that they form one installation (databases
// registered together in the first one, the control database).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "postgres/registry.h"
#include "tocsin/config.h"

namespace tocsin {

struct OpenDatabase {
  DatabaseId database_id = 0;
  std::string name;                            // as registered
  std::string address;                         // host, port and database, for messages
  std::string url;                             // as the operator gave it; may have a password
  bool is_answering = true;                    // at the start
  std::shared_ptr<ExpectedDatabase> expected;  // what sessions accept at the address
  std::string silence;                         // if not answering: the error
  // How often sessions of this node found that two jobs have one id, for the metrics.
  std::shared_ptr<std::atomic<std::int64_t>> ids_given_twice = std::make_shared<std::atomic<std::int64_t>>(0);
};

// The settings of a session that accepts only this database, not another one at its address.
SessionConfig session_of(const OpenDatabase& database, const std::string& application);

struct OpenDatabases {
  int shards = 0;
  Registry registry;
  std::vector<OpenDatabase> databases;  // the control database first
  std::vector<std::string> notices;     // worth a line in the log
};

using OnStep = std::function<void(const std::string&)>;  // called with a line of text

// Creates or upgrades the schema in all databases, and registers them as one installation. All must answer; with
// `may_miss`, once the shards have been placed, only the control database must. Calls `on_step` with every step taken
// and, for each database, whether it changed.
Status migrate_databases(const NodeConfig& config, bool may_miss, const OnStep& on_step);

// Opens the databases that a node starts with. The control database must answer. Another one that does not answer is
// assumed to be the registered database of its name or address, or the only one left, and checked when it answers.
// Error invalid: they are not one installation, not all of its databases with shards, or of another schema version.
Result<OpenDatabases> open_databases(const NodeConfig& config);

// Checks that this database, which is not the control database, is the one that `registry` has under this id, with a
// schema that this binary knows. Error invalid: it is not.
Status check_database(Session& session, const Registry& registry, DatabaseId database_id, int shards);

}  // namespace tocsin

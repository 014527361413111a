// Opens the databases that an operator named: identifies each, and checks that they form one installation.
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
  std::string name;
  std::string address;
  std::string url;
  bool is_answering = true;
  std::shared_ptr<ExpectedDatabase> expected;
  std::string silence;  // if not answering: the error
  // Ids that two jobs had, found by sessions of this node.
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

using OnStep = std::function<void(const std::string&)>;

// Creates or upgrades the schema in all databases, and registers them as one installation. All must answer; with
// `may_miss`, databases that are registered already need not. Calls `on_step` with every step taken and, for each
// database, whether it changed.
Status migrate_databases(const NodeConfig& config, bool may_miss, const OnStep& on_step);

// Opens the databases that a node starts with. The control database must answer. Another one that does not answer is
// assumed to be the registered database of its name or address, and checked when it answers. Error invalid: they are
// not one installation, or not of this binary's schema version.
Result<OpenDatabases> open_databases(const NodeConfig& config);

// Whether this database, which is not the control database, is what `registry` says, with a schema that this binary
// knows.
Status check_database(Session& session, const Registry& registry, DatabaseId database_id, int shards);

}  // namespace tocsin

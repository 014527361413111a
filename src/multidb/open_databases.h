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
  DatabaseId place = 0;
  std::string name;
  std::string address;
  std::string url;
  bool is_answering = true;
  std::shared_ptr<ExpectedDatabase> expected;
  std::string silence;  // why it does not answer
  // Ids that two jobs had, found by sessions of this node.
  std::shared_ptr<std::atomic<std::int64_t>> ids_given_twice = std::make_shared<std::atomic<std::int64_t>>(0);
};

// Of a node with this database, and with no other one that answers at its address.
SessionConfig session_of(const OpenDatabase& database, const std::string& application);

struct OpenDatabases {
  int shards = 0;
  Registry registry;
  std::vector<OpenDatabase> databases;  // the control database first
  std::vector<std::string> notices;     // worth a line in the log
};

using OnStep = std::function<void(const std::string&)>;

// Creates or upgrades the schema in all of them, and makes them one installation. All must answer; where `may_miss`,
// those that belong to the installation already need not. Calls `on_step` with
// every step taken and, for each database, whether there was anything to do.
Status migrate_databases(const NodeConfig& config, bool may_miss, const OnStep& on_step);

// What a node starts with. The control database must answer; another one that does not is taken for the registered
// database of its name or address, to be looked at when it does. Error invalid: they do not fit together, or not to
// this binary.
Result<OpenDatabases> open_databases(const NodeConfig& config);

// Whether this database, which is not the control database, is what `registry` says, with a schema that this binary
// knows.
Status check_database(Session& session, const Registry& registry, DatabaseId place, int shards);

}  // namespace tocsin

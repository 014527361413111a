// Opens the databases that an operator named for a node, `tocsin shard` or `tocsin migrate`: identifies each, and
// checks that they form one installation (databases registered together in the first one, the control database). Each
// call uses sessions of its own and blocks, a migration for as long as it takes. Thread: any.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
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
  std::shared_ptr<ExpectedDatabase> expected;  // what sessions accept at the address; DatabaseCheck updates it
  std::string silence;                         // if not answering: the error
  // Job ids that sessions of this node found on two jobs (the older one gets a new id), for the metrics.
  std::shared_ptr<std::atomic<std::int64_t>> ids_given_twice = std::make_shared<std::atomic<std::int64_t>>(0);
};

// The settings of a session that accepts only this database, not another one at its address.
SessionConfig session_of(const OpenDatabase& database, const std::string& application);

struct OpenDatabases {
  int shards = 0;  // of the installation
  Registry registry;
  std::vector<OpenDatabase> databases;  // the control database first
  std::vector<std::string> notices;     // warnings for the log
};

using OnStep = std::function<void(const std::string&)>;  // called with a line of text

// Creates or upgrades the schema in all databases, and registers them as one installation. All must answer; with
// `may_miss`, once the shards have been assigned to databases, only the control database must. Calls `on_step` with
// every step taken and, for each database, whether it changed. Error invalid: a setting, or a database that cannot be
// part of the installation; unavailable: a database does not answer. Safe to repeat.
Status migrate_databases(const NodeConfig& config, bool may_miss, const OnStep& on_step);

// Opens all databases of `config`. The control database must answer (else Error unavailable). Another one that does not
// answer is assumed to be the registered database of its name or, without a name, of its address or the only one left;
// DatabaseCheck checks it when it answers. Error invalid: they are not one installation, not all of its databases with
// shards, or of another schema version.
Result<OpenDatabases> open_databases(const NodeConfig& config);

// Checks that this database, which is not the control database, is the one that `registry` has under this id, with a
// schema that this binary knows. Error invalid: it is not; else the error of the reads.
Status check_database(Session& session, const Registry& registry, DatabaseId database_id, int shards);

}  // namespace tocsin

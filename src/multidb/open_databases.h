// Opens the databases that an operator named for a node, for `tocsin shard` or for `tocsin migrate`. It identifies each
// and checks that they form one installation: databases registered together in the first one, the control database.
// Each call uses sessions of its own and blocks; a migration blocks for as long as it takes. Thread: any.
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
  std::string url;                             // as the operator gave it; may contain a password
  bool is_answering = true;                    // when it was opened
  std::shared_ptr<ExpectedDatabase> expected;  // what sessions accept at the address; DatabaseCheck updates it
  std::string silence;                         // the error, if it did not answer
  // For the metrics: ids that sessions of this node found on two jobs (postgres/duplicate_ids.h).
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

// Creates or upgrades the schema in all databases, and registers them as one installation. All databases must answer.
// With `may_miss` only the control database must, once the shards have been assigned to databases. `on_step`: called
// with a line of text for every step and, for each database, whether it changed. Error invalid: a setting is wrong, or
// a database cannot be part of the installation; unavailable: a database does not answer. Safe to repeat.
Status migrate_databases(const NodeConfig& config, bool may_miss, const OnStep& on_step);

// Opens all databases of `config`.
//  - The control database must answer; otherwise Error unavailable.
//  - Another database may be down. With a name it is taken for the registered database of that name. Without one it is
//    taken for the database registered under its address, else for the only one left. DatabaseCheck checks that when it
//    answers.
//  - Error invalid: the databases are not one installation, a database with shards is missing, or one has another
//    schema version.
Result<OpenDatabases> open_databases(const NodeConfig& config);

// Checks that the session's database is the one that `registry` has under this id, with a schema that this binary
// knows. Not for the control database. Error invalid: it is not. Other Errors: of the reads.
Status check_database(Session& session, const Registry& registry, DatabaseId database_id, int shards);

}  // namespace tocsin

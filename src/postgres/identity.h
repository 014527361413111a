// DatabaseIdentity: identifies a database independently of its address. Sessions compare it when they connect, because
// another database may answer at an address later.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <utility>

#include "base/latest.h"

namespace tocsin {

// A promoted standby keeps the identity; a restored dump has a new one.
struct DatabaseIdentity {
  std::int64_t server = 0;  // system identifier of the PostgreSQL server (pg_control_system)
  std::int64_t oid = 0;     // of the database (pg_database)
  auto operator<=>(const DatabaseIdentity&) const = default;
};

// "server 7012345678901234567, database 16384"
inline std::string to_string(const DatabaseIdentity& identity) {
  return "server " + std::to_string(identity.server) + ", database " + std::to_string(identity.oid);
}

// The database that sessions must find at an address. All sessions of a node with one database share this object, made
// by open_databases() (multidb/open_databases.h). Sessions reconnect by themselves; a session that finds another
// database closes its connection, and its call ends with Error unavailable. Thread: any.
class ExpectedDatabase {
 public:
  // `name`: the registered name of the database; for messages.
  ExpectedDatabase(std::string name, const DatabaseIdentity& identity)
      : name_(std::move(name)), identity_(std::make_shared<const DatabaseIdentity>(identity)) {}
  const std::string& name() const { return name_; }
  DatabaseIdentity identity() const { return *identity_.get(); }
  // Called by DatabaseCheck (multidb/database_check.h) after `tocsin migrate` has registered a restored database again.
  void set(const DatabaseIdentity& identity) { identity_.set(std::make_shared<const DatabaseIdentity>(identity)); }

 private:
  const std::string name_;
  Latest<DatabaseIdentity> identity_;
};

}  // namespace tocsin

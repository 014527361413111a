// The identity of a database, independent of its address; sessions compare it when they connect.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <utility>

#include "base/latest.h"

namespace tocsin {

// Unchanged when a standby is promoted; a restored dump has another identity.
struct DatabaseIdentity {
  std::int64_t server = 0;  // system identifier of the PostgreSQL server (pg_control_system)
  std::int64_t oid = 0;     // of the database (pg_database)
  auto operator<=>(const DatabaseIdentity&) const = default;
};

// "server 7012345678901234567, database 16384"
inline std::string to_string(const DatabaseIdentity& identity) {
  return "server " + std::to_string(identity.server) + ", database " + std::to_string(identity.oid);
}

// The database that sessions must find at an address; all sessions of a node to it share one object. Addresses are
// reassigned, and sessions connect again by themselves; one that finds another database there closes the connection
// (Error unavailable). Thread: any.
class ExpectedDatabase {
 public:
  // `name`: as registered; for messages.
  ExpectedDatabase(std::string name, const DatabaseIdentity& identity)
      : name_(std::move(name)), identity_(std::make_shared<const DatabaseIdentity>(identity)) {}
  const std::string& name() const { return name_; }
  DatabaseIdentity identity() const { return *identity_.get(); }
  // Called by DatabaseCheck after `tocsin migrate` has recorded a restored database anew.
  void set(const DatabaseIdentity& identity) { identity_.set(std::make_shared<const DatabaseIdentity>(identity)); }

 private:
  const std::string name_;
  Latest<DatabaseIdentity> identity_;
};

}  // namespace tocsin

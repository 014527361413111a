// The registry of an installation's databases, stored in the control database (the first one). It recognises a database
// by its identity (postgres/identity.h), not by its URL: none is mistaken for another or registered twice. Used by
// `tocsin migrate`, when a node starts, and by DatabaseCheck. Errors: those of Session, besides those named here.
// Thread: the session's owner.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "ports/member_store.h"
#include "postgres/session.h"

namespace tocsin {

// A database as an operator names it: "postgresql://..." or "name=postgresql://...", or the same with a keyword=value
// string.
struct DatabaseUrl {
  std::string name;  // empty: none was given
  std::string url;
};
// Error invalid: the name is not 1 to 63 letters, digits, '_', '.' or '-', or the rest is not a connection string.
Result<DatabaseUrl> parse_database(const std::string& text);

// Reads the identity of the session's database; needs no schema. Error invalid: it is a standby.
Result<DatabaseIdentity> identify(Session& session);

struct RegisteredDatabase {
  DatabaseId database_id = 0;
  std::string name;
  std::string address;  // "host:port/dbname" (database_name()) of the URL last given to `tocsin migrate`
  DatabaseIdentity identity;
};

// The registry as the control database has it.
struct Registry {
  std::string installation;                   // its UUID
  std::vector<RegisteredDatabase> databases;  // by id; empty: one database only, which was never registered
  ShardMap map;
  std::vector<Shard> moving;  // shards with a move under way, in order

  // nullptr: not registered.
  const RegisteredDatabase* find(const DatabaseIdentity& identity) const;
  const RegisteredDatabase* at(DatabaseId database_id) const;
  // The shards that live in the database, in order. `shards`: the installation's shard count.
  std::vector<Shard> shards_at(DatabaseId database_id, int shards) const;
};
// Reads the registry. Error invalid: the session's database is not the control database of its installation, or it is a
// copy of one and the installation has several databases.
Result<Registry> read_registry(Session& control);

// Checks that the session's database is the registered database `wanted`, and has all shards that the map places in it,
// except moving ones. Not for the control database. Error invalid: a check fails; the message says why.
Status check_registered(Session& session, const Registry& registry, const RegisteredDatabase& wanted, int shards);

struct ServerReport {
  std::vector<std::string> warnings;  // settings that an operator should change, human-readable
  std::string superuser;              // a superuser that the session's role is, or may become as a member; else empty
};
// Reads a server's settings. REQUIRES: the session keeps the server's synchronous_commit.
Result<ServerReport> server_report(Session& session);

// A database given to `tocsin migrate`; the first is the control database.
struct GivenDatabase {
  Session& session;
  std::string name;     // empty: named as the database
  std::string address;  // as database_name()
};
// Registers new databases in the control database, joins them to the installation, and assigns shards to databases:
// evenly at the first migration; databases that join later get none. One transaction in each database. May be repeated:
// it completes an interrupted call.
//  - `on_step`: called before the commit, with a line of text for each database added or restored.
//  - Error invalid: a new database is not empty or belongs to another installation, a name is taken, the database is
//    registered under another name, or there are more than kMaxDatabases.
// REQUIRES: at least one database; all have this binary's schema and the same shard count.
Status register_databases(std::span<const GivenDatabase> given, int shards,
                          const std::function<void(const std::string&)>& on_step);

}  // namespace tocsin

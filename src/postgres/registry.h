// The databases of an installation: recorded at home, each known by what identifies it rather than by its URL, so that
// none is taken for another or counted twice.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "postgres/session.h"
#include "tocsin/member_store.h"

namespace tocsin {

// As an operator names it: "postgresql://..." or "name=postgresql://...", keyword=value strings likewise.
struct DatabaseUrl {
  std::string name;  // empty: none was given
  std::string url;
};
// Error invalid: the name is no name (letters, digits, '_', '.', '-'; at most 63), or the rest no connection string.
Result<DatabaseUrl> parse_database(const std::string& text);

// Works without a schema. Error invalid: it is a standby.
Result<DatabaseIdentity> identify(Session& session);

struct RegisteredDatabase {
  Place place = 0;
  std::string name;
  std::string address;  // as database_name() says, when it was last given to migrate
  DatabaseIdentity identity;
};

// What home says.
struct Registry {
  std::string installation;
  std::vector<RegisteredDatabase> databases;  // by place; empty: home is alone and was never registered
  ShardMap map;
  std::vector<Shard> moving;  // to another database

  const RegisteredDatabase* find(const DatabaseIdentity& identity) const;
  const RegisteredDatabase* at(Place place) const;
  std::vector<Shard> shards_at(Place place, int shards) const;
};
// Error invalid: this database is not the home of its installation, or is a copy of one with several databases.
Result<Registry> read_registry(Session& home);

// Whether this database, which is not home, is the one that `registry` says and agrees with home on which shards live
// in it. Error invalid: it is not, and why.
Status check_place(Session& session, const Registry& registry, const RegisteredDatabase& wanted, int shards);

struct ServerReport {
  std::vector<std::string> warnings;  // what callers of the SQL functions should know about the server
  std::string superuser;              // the role of these sessions, if it is a superuser
};
// Its own, short connection.
Result<ServerReport> server_report(const SessionConfig& config);

// One database of those that migrate was given; the first is home.
struct GivenDatabase {
  Session& session;
  std::string name;     // empty: that of the database
  std::string address;  // as database_name()
};
// Records at home those that are not yet recorded, makes them part of the installation, and gives every shard a place:
// spread evenly over them at the first migration; who comes later gets none. Safe to repeat: what was interrupted is
// completed. Calls `on_step` with a line of text for each change. REQUIRES: all have this binary's schema and one shard
// count. Error invalid: one that is not empty, or belongs elsewhere, or has another name.
Status register_databases(std::span<const GivenDatabase> given, int shards,
                          const std::function<void(const std::string&)>& on_step);

}  // namespace tocsin

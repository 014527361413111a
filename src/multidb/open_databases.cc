#include "multidb/open_databases.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <deque>

#include "postgres/migrator.h"

namespace tocsin {
namespace {

Error about_address(const std::string& address, const Error& error) {
  return {error.code, "database " + address + ": " + error.message, error.field};
}

// A database that the operator named, and the facts known about it so far.
struct Named {
  DatabaseUrl given;
  std::string address;
  std::optional<DatabaseIdentity> identity;  // of one that answers
  std::optional<Error> silence;              // of one that does not
};

enum class Patience { usual, without_end };  // a migration takes as long as it takes

SessionConfig setup_session(const std::string& url, Patience patience) {
  SessionConfig session;
  session.url = url;
  session.application = "tocsin setup";
  session.has_pinned_plans = false;
  if (patience == Patience::without_end) session.statement_timeout_ms = 0;
  return session;
}

Result<std::vector<Named>> read_names(const NodeConfig& config) {
  if (config.databases.empty())
    return Error{ErrorCode::invalid, "a database is needed: --database URL or TOCSIN_DATABASE", "database"};
  std::vector<Named> all;
  for (const std::string& text : config.databases) {
    auto given = parse_database(text);
    if (!given) return given.error();
    const auto address = database_name(given->url);
    if (!address) return address.error();
    all.push_back({std::move(*given), *address, {}, {}});
  }
  return all;
}

// Reads the identity of each. Error: a database is a standby, or was given twice, in any spelling.
Status identify_all(std::vector<Named>& all, std::deque<Session>& sessions, Patience patience) {
  for (Named& named : all) {
    auto identity = identify(sessions.emplace_back(setup_session(named.given.url, patience)));
    if (!identity) {
      named.silence = identity.error();
      continue;
    }
    named.identity = *identity;
    for (const Named& other : all) {
      if (&other == &named) break;
      if (other.identity == named.identity)
        return Error{
            ErrorCode::invalid,
            "database " + other.address + " and database " + named.address + " are the same database: name it once",
            "database"};
    }
  }
  return Unit{};
}

Result<const RegisteredDatabase*> registered(const Registry& registry, const Named& named) {
  const RegisteredDatabase* known = registry.find(*named.identity);
  if (!known)
    return Error{ErrorCode::invalid,
                 "it is not registered with this installation: run `tocsin migrate` with all databases", "database"};
  if (!named.given.name.empty() && named.given.name != known->name)
    return Error{ErrorCode::invalid,
                 "it is registered as '" + known->name + "', not '" + named.given.name + "': names never change",
                 "database"};
  return known;
}

// Finds the registered database that does not answer: by its name. Without a name by its address, else the only one
// left.
Result<const RegisteredDatabase*> guess(const Registry& registry, const Named& named,
                                        const std::vector<OpenDatabase>& taken, bool is_last) {
  std::vector<const RegisteredDatabase*> left;
  for (const RegisteredDatabase& known : registry.databases)
    if (std::ranges::find(taken, known.database_id, &OpenDatabase::database_id) == taken.end()) left.push_back(&known);
  for (const RegisteredDatabase* known : left)
    if (named.given.name.empty() ? known->address == named.address : known->name == named.given.name) return known;
  if (named.given.name.empty() && is_last && left.size() == 1) return left.front();
  return Error{named.silence->code,
               named.silence->message + "; and no database of this " + (named.given.name.empty() ? "address" : "name") +
                   " is registered",
               "database"};
}

Status refuse_missing(const OpenDatabases& open) {
  for (const RegisteredDatabase& known : open.registry.databases) {
    if (std::ranges::find(open.databases, known.database_id, &OpenDatabase::database_id) != open.databases.end())
      continue;
    const auto n = open.registry.shards_at(known.database_id, open.shards).size();
    if (n == 0) continue;
    return Error{ErrorCode::invalid,
                 "the shard map places " + std::to_string(n) + " shards in the database '" + known.name + "' (" +
                     known.address + "), which was not given",
                 "database"};
  }
  return Unit{};
}

// Opens all databases except the control database. Databases that answer come first, so that guess() has fewer to
// choose from.
Status open_others(OpenDatabases& open, std::span<Named> others, std::deque<Session>& sessions) {
  std::vector<const Named*> silent;
  for (std::size_t i = 0; i < others.size(); ++i) {
    const Named& named = others[i];
    if (!named.identity) {
      // A standby of a registered database may be about to be promoted, so it counts as one that does not answer.
      silent.push_back(&named);
      continue;
    }
    const auto known = registered(open.registry, named);
    if (!known) return about_address(named.address, known.error());
    const DatabaseId database_id = (*known)->database_id;
    if (auto done = check_database(sessions[i + 1], open.registry, database_id, open.shards); !done)
      return about_address(named.address, done.error());
    open.databases.push_back({database_id, (*known)->name, named.address, named.given.url, true,
                              std::make_shared<ExpectedDatabase>((*known)->name, *named.identity), ""});
  }
  for (const Named* named : silent) {
    const auto known = guess(open.registry, *named, open.databases, silent.size() == 1);
    if (!known) return about_address(named->address, known.error());
    open.databases.push_back({(*known)->database_id, (*known)->name, named->address, named->given.url, false,
                              std::make_shared<ExpectedDatabase>((*known)->name, (*known)->identity),
                              named->silence->message});
    open.notices.push_back("database " + (*known)->name + ": does not answer at the start: " + named->silence->message);
  }
  return Unit{};
}

}  // namespace

SessionConfig session_of(const OpenDatabase& database, const std::string& application) {
  SessionConfig session;
  session.url = database.url;
  session.application = application;
  session.expected = database.expected;
  session.on_duplicate_id = [found = database.ids_given_twice, name = database.name](std::int64_t job_id) {
    ++*found;
    spdlog::error("database {}: job id {} was given twice; the record of the older job has a fresh id now", name,
                  job_id);
  };
  session.on_refused_retry = [name = database.name](const Error& error) {
    spdlog::error("database {}: a retry of the dead jobs of a type leaves out what the database refuses: {}", name,
                  error.message);
  };
  return session;
}

Status check_database(Session& session, const Registry& registry, DatabaseId database_id, int shards) {
  auto installed = check_installation(session, {});
  if (!installed) return installed.error();
  if (installed->shards != shards)
    return Error{
        ErrorCode::invalid,
        "it has " + std::to_string(installed->shards) + " shards, the control database has " + std::to_string(shards),
        ""};
  return check_registered(session, registry, *registry.at(database_id), shards);
}

Status migrate_databases(const NodeConfig& config, bool may_miss, const OnStep& on_step) {
  auto all = read_names(config);
  if (!all) return all.error();
  std::deque<Session> sessions;
  if (auto done = identify_all(*all, sessions, Patience::without_end); !done) return done;
  for (const Named& named : *all)
    if (named.silence && (!may_miss || &named == &all->front())) return about_address(named.address, *named.silence);
  std::optional<int> shards = config.shards;
  std::vector<GivenDatabase> given;
  for (std::size_t i = 0; i < all->size(); ++i) {
    const Named& named = (*all)[i];
    if (named.silence) {
      // The first migration places every shard: it needs them all.
      const auto registry = read_registry(sessions.front());
      if (!registry || registry->map.database_ids.empty()) return about_address(named.address, *named.silence);
      continue;
    }
    const auto applied = migrate(sessions[i], shards, [&](const std::string& step) { on_step("applied " + step); });
    if (!applied) return about_address(named.address, applied.error());
    on_step(named.address + ": " + (*applied == 0 ? "nothing to do" : "up to date"));
    if (!shards) {
      const auto installed = check_installation(sessions[i], {});
      if (!installed) return about_address(named.address, installed.error());
      shards = installed->shards;
    }
    given.push_back({sessions[i], named.given.name, named.address});
  }
  if (auto done = register_databases(given, *shards, on_step); !done)
    return about_address(all->front().address, done.error());
  return Unit{};
}

Result<OpenDatabases> open_databases(const NodeConfig& config) {
  auto all = read_names(config);
  if (!all) return all.error();
  std::deque<Session> sessions;
  if (auto done = identify_all(*all, sessions, Patience::usual); !done) return done.error();
  Named& control = all->front();
  if (control.silence) return about_address(control.address, *control.silence);
  const auto installed = check_installation(sessions.front(), config.shards);
  if (!installed) return about_address(control.address, installed.error());
  auto registry = read_registry(sessions.front());
  if (!registry) return about_address(control.address, registry.error());
  OpenDatabases open{installed->shards, std::move(*registry), {}, {}};
  const RegisteredDatabase* known = open.registry.at(0);
  // A lone control database need not be registered.
  std::string name = known ? known->name : control.address.substr(control.address.rfind('/') + 1);
  open.databases.push_back({0, name, control.address, control.given.url, true,
                            std::make_shared<ExpectedDatabase>(name, *control.identity), ""});
  if (auto done = open_others(open, std::span(*all).subspan(1), sessions); !done) return done.error();
  if (auto done = refuse_missing(open); !done) return done.error();
  return open;
}

}  // namespace tocsin

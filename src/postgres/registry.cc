#include "postgres/registry.h"

#include <libpq-fe.h>

#include <algorithm>

#include "base/assert.h"
#include "postgres/sql_text.h"
#include "postgres/values.h"

namespace tocsin {
namespace {

// What a database has recorded about itself.
struct Local {
  DatabaseIdentity identity;
  std::string database;  // as the server calls it
  std::string installation;
  DatabaseId database_id = 0;
  std::string name;
  std::optional<std::vector<Shard>> shards;  // that live here; nullopt: all
  bool is_empty = false;                     // no job and no type
  int registered = 0;                        // databases that it is the control database of
};

DatabaseIdentity identity_from(const pqxx::row& row) { return {row[0].as<std::int64_t>(), row[1].as<std::int64_t>()}; }

Local read_local(pqxx::transaction_base& tx) {
  Local local;
  local.identity = identity_from(tx.exec1(sql::statement("identity")));
  const auto row = tx.exec1(sql::statement("place_of_database"));
  local.database = row[0].c_str();
  local.installation = row[1].c_str();
  local.database_id = row[2].as<DatabaseId>();
  local.name = row[3].c_str();
  if (!row[4].is_null()) local.shards = numbers_from_array<Shard>(text_of(row[4]));
  local.registered = row[5].as<int>();
  local.is_empty = row[6].as<bool>();
  return local;
}

Registry registry_from(pqxx::transaction_base& tx) {
  Registry registry;
  registry.installation = tx.exec1("SELECT installation FROM tocsin.place")[0].c_str();
  for (const auto& row :
       tx.exec("SELECT place, name, address, server, database_oid FROM tocsin.database ORDER BY place")) {
    registry.databases.push_back({row[0].as<DatabaseId>(),
                                  row[1].c_str(),
                                  row[2].c_str(),
                                  {row[3].as<std::int64_t>(), row[4].as<std::int64_t>()}});
  }
  const auto map = tx.exec1("SELECT version, owners, places FROM tocsin.shard_map");
  registry.map = {map[0].as<std::int64_t>(), numbers_from_array<NodeId>(text_of(map[1])),
                  numbers_from_array<DatabaseId>(text_of(map[2]))};
  for (const auto& row : tx.exec("SELECT shard FROM tocsin.move ORDER BY shard"))
    registry.moving.push_back(static_cast<Shard>(row[0].as<int>()));
  return registry;
}

void refuse_unless_control(const Local& local) {
  if (local.database_id != 0) {
    throw Refused("it is the database '" + local.name +
                  "' of an installation with another control database: name that one first");
  }
}

std::string shard_array(const std::optional<std::vector<Shard>>& shards) {
  PgArray array;
  for (const Shard shard : *shards) array.add(static_cast<std::int64_t>(shard));
  return array.literal();
}

// Unless a shard has moved since `local` was read. Moves lock the same row before they read the list.
void set_shards_here(pqxx::transaction_base& tx, const Local& local, const std::optional<std::vector<Shard>>& here) {
  const auto row = tx.exec1("SELECT shards FROM tocsin.place FOR UPDATE");
  std::optional<std::vector<Shard>> now;
  if (!row[0].is_null()) now = numbers_from_array<Shard>(text_of(row[0]));
  if (now == here) return;  // another migration was faster
  if (now != local.shards) throw Busy("a shard moves meanwhile: run this again");
  if (here)
    tx.exec_params("SELECT tocsin.set_shards_here($1::smallint[])", shard_array(here));
  else
    tx.exec("SELECT tocsin.set_shards_here(NULL)");
}

// From now on job ids are drawn in steps of kMaxDatabases, each database with its own remainder, and above `above`.
void step_sequence(pqxx::transaction_base& tx, DatabaseId database_id, std::int64_t above) {
  const std::int64_t start = (above / kMaxDatabases + 1) * kMaxDatabases + database_id;
  tx.exec(sql::statement("step_ids", {{"step", std::to_string(kMaxDatabases)}, {"start", std::to_string(start)}}));
}

std::int64_t drawn_so_far(pqxx::transaction_base& tx) {
  return tx.exec1("SELECT last_value FROM tocsin.job_seq")[0].as<std::int64_t>();
}

bool is_keyword(const std::string& word) {
  PQconninfoOption* all = PQconndefaults();
  bool is_found = false;
  for (const PQconninfoOption* option = all; option && option->keyword; ++option)
    is_found = is_found || word == option->keyword;
  PQconninfoFree(all);
  return is_found;
}

constexpr const char* kNameCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";

bool is_url(std::string_view text) { return text.starts_with("postgres://") || text.starts_with("postgresql://"); }

template <class T>
Error about(const GivenDatabase& given, const Result<T>& failed) {
  return {failed.error().code, given.address + ": " + failed.error().message, failed.error().field};
}

// The control database's part: its own row, the rows of new databases, and the database of every shard.
class ControlStep {
 public:
  ControlStep(pqxx::transaction_base& tx, std::span<const GivenDatabase> given, const std::vector<Local>& locals,
              const std::function<void(const std::string&)>& on_step)
      : tx_(tx), given_(given), locals_(locals), on_step_(on_step) {}

  // The whole registry afterwards, and the id of each given database.
  std::pair<Registry, std::vector<DatabaseId>> run(int shards);

 private:
  void record_control();
  DatabaseId database_of(std::size_t i);
  void refuse_unregistered(const Local& local, const std::string& name) const;
  std::string free_name(const std::string& wanted) const;
  void insert(const RegisteredDatabase& database);
  void update(const RegisteredDatabase& database);
  void spread_shards(int shards, const std::vector<DatabaseId>& database_ids);

  pqxx::transaction_base& tx_;
  const std::span<const GivenDatabase> given_;
  const std::vector<Local>& locals_;
  const std::function<void(const std::string&)>& on_step_;
  Registry registry_;
};

void ControlStep::insert(const RegisteredDatabase& database) {
  tx_.exec_params0(sql::statement("insert_database"), database.database_id, database.name, database.address,
                   database.identity.server, database.identity.oid);
  registry_.databases.push_back(database);
}

void ControlStep::update(const RegisteredDatabase& database) {
  const auto done = tx_.exec_params(sql::statement("update_database"), database.database_id, database.address,
                                    database.identity.server, database.identity.oid);
  TOCSIN_ASSERT(done.affected_rows() == 1);
  for (RegisteredDatabase& known : registry_.databases)
    if (known.database_id == database.database_id) known = database;
}

std::string ControlStep::free_name(const std::string& wanted) const {
  const auto is_taken = [&](const std::string& name) {
    return std::ranges::any_of(registry_.databases, [&](const auto& known) { return known.name == name; });
  };
  std::string name = wanted;
  for (int n = 2; is_taken(name); ++n) name = wanted + "-" + std::to_string(n);
  return name;
}

void ControlStep::record_control() {
  const Local& local = locals_.front();
  refuse_unless_control(local);
  const RegisteredDatabase* known = registry_.at(0);
  const std::string& wanted = given_.front().name;
  RegisteredDatabase control{0,
                             known            ? known->name
                             : wanted.empty() ? local.database
                                              : wanted,
                             given_.front().address, local.identity};
  // A sole control database may be a copy of another: then it takes the name of its own database.
  if (known && known->identity != local.identity && registry_.databases.size() == 1) {
    control.name = wanted.empty() ? local.database : wanted;
    tx_.exec_params0("UPDATE tocsin.database SET name = $1 WHERE place = 0", control.name);
  } else if (known && known->identity != local.identity) {
    on_step_("the control database was restored or copied: recorded anew");
  }
  if (!wanted.empty() && wanted != control.name)
    throw Refused("it is registered as '" + control.name + "', not '" + wanted + "': names never change");
  known ? update(control) : insert(control);
  tx_.exec_params0("UPDATE tocsin.place SET name = $1", control.name);
}

// Refuses a database that belongs to another installation, or has jobs or types.
void ControlStep::refuse_unregistered(const Local& local, const std::string& name) const {
  if (local.database_id != 0) throw Refused(name + ": it belongs to another installation, as '" + local.name + "'");
  if (local.registered > 1) throw Refused(name + ": it is the control database of another installation");
  if (!local.is_empty) throw Refused(name + ": it has jobs or types of its own; only an empty database can be added");
}

DatabaseId ControlStep::database_of(std::size_t i) {
  const Local& local = locals_[i];
  const GivenDatabase& given = given_[i];
  RegisteredDatabase database;
  if (const RegisteredDatabase* known = registry_.find(local.identity)) {
    database = *known;
  } else if (local.database_id != 0 && local.installation == registry_.installation &&
             registry_.at(local.database_id) && registry_.at(local.database_id)->name == local.name) {
    database = *registry_.at(local.database_id);
    on_step_(database.name + " was restored or copied: recorded anew");
  } else {
    refuse_unregistered(local, given.address);
    const DatabaseId next = registry_.databases.back().database_id + 1;
    if (next >= kMaxDatabases)
      throw Refused("an installation has at most " + std::to_string(kMaxDatabases) + " databases");
    const std::string name = given.name.empty() ? free_name(local.database) : given.name;
    if (free_name(name) != name) throw Refused(given.address + ": another database is called '" + name + "'");
    // From the second database on, so that a lone control database keeps its numbers dense.
    if (tx_.exec1("SELECT increment_by FROM pg_sequences WHERE schemaname = 'tocsin' AND sequencename = 'job_seq'")[0]
            .as<std::int64_t>() != kMaxDatabases)
      step_sequence(tx_, 0, drawn_so_far(tx_));
    insert({next, name, given.address, local.identity});
    on_step_("added the database " + name);
    return next;
  }
  if (!given.name.empty() && given.name != database.name)
    throw Refused(given.address + ": it is registered as '" + database.name + "', not '" + given.name +
                  "': names never change");
  database.address = given.address;
  database.identity = local.identity;
  update(database);
  return database.database_id;
}

// Whole ranges of shards: the tables of live jobs go by the remainder, and each database uses them all.
void ControlStep::spread_shards(int shards, const std::vector<DatabaseId>& database_ids) {
  if (!registry_.map.database_ids.empty()) return;
  PgArray array;
  for (int shard = 0; shard < shards; ++shard) {
    const DatabaseId database_id =
        database_ids[static_cast<std::size_t>(shard) * database_ids.size() / static_cast<std::size_t>(shards)];
    registry_.map.database_ids.push_back(database_id);
    array.add(static_cast<std::int64_t>(database_id));
  }
  const auto done = tx_.exec_params(sql::statement("spread_shards"), array.literal());
  TOCSIN_ASSERT(done.affected_rows() == 1);
  tx_.exec0("NOTIFY tocsin_member");
}

std::pair<Registry, std::vector<DatabaseId>> ControlStep::run(int shards) {
  tx_.exec("SELECT pg_advisory_xact_lock(hashtextextended('tocsin.migrate', 0))");
  registry_ = registry_from(tx_);
  record_control();
  std::vector<DatabaseId> database_ids{0};
  for (std::size_t i = 1; i < given_.size(); ++i) database_ids.push_back(database_of(i));
  spread_shards(shards, database_ids);
  return {std::move(registry_), std::move(database_ids)};
}

// The part of a database that is not the control database: its identity, its numbers, and its ownership constraint.
void join(pqxx::transaction_base& tx, const Local& local, const RegisteredDatabase& database, const Registry& registry,
          std::int64_t drawn_at_control, int shards) {
  if (local.database_id != database.database_id || local.installation != registry.installation ||
      local.name != database.name) {
    tx.exec_params0("UPDATE tocsin.place SET installation = $1::uuid, place = $2, name = $3", registry.installation,
                    database.database_id, database.name);
    tx.exec0("DELETE FROM tocsin.database");
    step_sequence(tx, database.database_id, std::max(drawn_at_control, drawn_so_far(tx)));
  }
  const auto here = registry.shards_at(database.database_id, shards);
  if (!local.shards || (local.shards != here && registry.moving.empty())) set_shards_here(tx, local, here);
}

}  // namespace

Result<DatabaseUrl> parse_database(const std::string& text) {
  DatabaseUrl out{"", text};
  const std::size_t equals = text.find('=');
  const std::string word = text.substr(0, equals);
  const bool is_word = equals != std::string::npos && word.find_first_not_of(kNameCharacters) == std::string::npos;
  if (is_word && (is_url(std::string_view(text).substr(equals + 1)) ||
                  (!is_keyword(word) && text.find('=', equals + 1) != std::string::npos))) {
    out = {word, text.substr(equals + 1)};
    if (out.name.empty() || out.name.size() > 63)
      return Error{ErrorCode::invalid, "the name of a database has 1 to 63 letters, digits, '_', '.' or '-'",
                   "database"};
  }
  if (auto valid = database_name(out.url); !valid) return valid.error();
  return out;
}

Result<DatabaseIdentity> identify(Session& session) {
  auto identity = session.read<DatabaseIdentity>(
      [](pqxx::nontransaction& tx) { return identity_from(tx.exec1(sql::statement("identity"))); });
  if (identity || identity.error().code != ErrorCode::unavailable) return identity;
  // Sessions connect only to a server that can be written to, so a standby looks like one that is down.
  SessionConfig any = session.config();
  any.is_any_server = true;
  Session probe(any);
  const auto is_standby =
      probe.read<bool>([](pqxx::nontransaction& tx) { return tx.exec1("SELECT pg_is_in_recovery()")[0].as<bool>(); });
  if (is_standby && *is_standby)
    return Error{ErrorCode::invalid, "it is a standby, which cannot be written to: name the primary (or both)",
                 "database"};
  return identity;
}

const RegisteredDatabase* Registry::find(const DatabaseIdentity& identity) const {
  const auto found = std::ranges::find(databases, identity, &RegisteredDatabase::identity);
  return found == databases.end() ? nullptr : &*found;
}

const RegisteredDatabase* Registry::at(DatabaseId database_id) const {
  const auto found = std::ranges::find(databases, database_id, &RegisteredDatabase::database_id);
  return found == databases.end() ? nullptr : &*found;
}

std::vector<Shard> Registry::shards_at(DatabaseId database_id, int shards) const {
  std::vector<Shard> here;
  for (int shard = 0; shard < shards; ++shard)
    if (map.database_of(static_cast<Shard>(shard)) == database_id) here.push_back(static_cast<Shard>(shard));
  return here;
}

Result<Registry> read_registry(Session& control) {
  return control.read<Registry>([](pqxx::nontransaction& tx) {
    const Local local = read_local(tx);
    refuse_unless_control(local);
    Registry registry = registry_from(tx);
    if (registry.databases.size() > 1 && registry.at(0)->identity != local.identity) {
      throw Refused(
          "it is a copy of the control database of an installation with several databases: if it is to take "
          "its place, run `tocsin migrate` with all of them");
    }
    return registry;
  });
}

Status check_registered(Session& session, const Registry& registry, const RegisteredDatabase& wanted, int shards) {
  return session.read([&](pqxx::nontransaction& tx) {
    const Local local = read_local(tx);
    if (local.identity != wanted.identity)
      throw Refused("it calls itself '" + local.name + "' and is not the database that is registered as '" +
                    wanted.name + "': if it was restored or copied, run `tocsin migrate` with all databases");
    if (local.installation != registry.installation || local.database_id != wanted.database_id)
      throw Refused("it does not know that it is the database '" + wanted.name +
                    "' of this installation: run `tocsin migrate` with all databases");
    // A moving shard may live nowhere for a moment.
    auto here = registry.shards_at(wanted.database_id, shards);
    std::erase_if(here, [&](Shard shard) { return std::ranges::binary_search(registry.moving, shard); });
    if (!local.shards || !std::ranges::includes(*local.shards, here))
      throw Refused(
          "it does not know all the shards that the shard map places in it: run `tocsin migrate` with all "
          "databases");
  });
}

Result<ServerReport> server_report(Session& session) {
  TOCSIN_ASSERT(session.config().keeps_synchronous_commit);
  return session.read<ServerReport>([&](pqxx::nontransaction& tx) {
    ServerReport report;
    std::vector<std::string>& warnings = report.warnings;
    for (const auto& row : tx.exec(sql::statement("session_superuser"))) report.superuser = row[0].c_str();
    if (tx.exec1("SHOW fsync")[0].as<std::string>() == "off")
      warnings.push_back("fsync is off: a crash of its machine may lose jobs that were acknowledged, or all of it");
    if (tx.exec1("SHOW synchronous_commit")[0].as<std::string>() == "off") {
      warnings.push_back(session.is_pooled()
                             ? "synchronous_commit is off: a crash may lose jobs that were acknowledged"
                             : "synchronous_commit is off: a crash may lose jobs that were created through SQL (what "
                               "nodes write is safe)");
    }
    if (!session.is_pooled()) return report;
    // Without a pooler sessions bring these settings along.
    for (const char* setting : {"statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"}) {
      if (tx.exec_params1("SELECT current_setting($1)", setting)[0].as<std::string>() == "0")
        warnings.push_back("reached through a pooler that shares sessions, and the role has no " +
                           std::string(setting) + ": docs/operations.md says which settings it needs");
    }
    return report;
  });
}

Status register_databases(std::span<const GivenDatabase> given, int shards,
                          const std::function<void(const std::string&)>& on_step) {
  std::vector<Local> locals;
  for (const GivenDatabase& each : given) {
    auto local = each.session.read<Local>([](pqxx::nontransaction& tx) { return read_local(tx); });
    if (!local) return about(each, local);
    locals.push_back(std::move(*local));
  }
  std::vector<DatabaseId> database_ids;
  std::int64_t drawn_at_control = 0;
  auto registry = given.front().session.transact<Registry>([&](pqxx::work& tx) {
    auto [all, placed] = ControlStep(tx, given, locals, on_step).run(shards);
    // A control database that is alone has no ownership constraint.
    const auto here = all.shards_at(0, shards);
    const auto shards_here = here.size() == static_cast<std::size_t>(shards) ? std::nullopt : std::optional(here);
    // While a shard is moving, its mover says where it lives.
    if (locals.front().shards != shards_here && all.moving.empty()) set_shards_here(tx, locals.front(), shards_here);
    drawn_at_control = drawn_so_far(tx);
    database_ids = std::move(placed);
    return all;
  });
  if (!registry) return registry.error();
  for (std::size_t i = 1; i < given.size(); ++i) {
    auto joined = given[i].session.transact([&](pqxx::work& tx) {
      join(tx, locals[i], *registry->at(database_ids[i]), *registry, drawn_at_control, shards);
    });
    if (!joined) return about(given[i], joined);
  }
  return Unit{};
}

}  // namespace tocsin

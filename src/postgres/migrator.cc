#include "postgres/migrator.h"

#include "postgres/migrations.h"
#include "tocsin/shard.h"

namespace tocsin {
namespace {

int newest() { return migrations().empty() ? 0 : migrations().back().version; }

void refuse_if_newer(int installed) {
  if (installed > newest()) {
    throw Refused("the schema has version " + std::to_string(installed) + ", this binary knows versions up to " +
                  std::to_string(newest()) + ": use a newer binary");
  }
}

// Schemas made before 0.1.0 began with other migrations under the same numbers.
void refuse_if_foreign(pqxx::transaction_base& tx) {
  const auto first = tx.exec("SELECT name FROM tocsin.migration WHERE version = 1");
  const std::string name = first.empty() ? "none" : first[0][0].as<std::string>();
  if (name != migrations().front().name) {
    throw Refused("the schema was made by a development version before 0.1.0 (its first migration is " + name +
                  ", not " + migrations().front().name +
                  ") and cannot be upgraded: install into an empty database and create the jobs there again");
  }
}

void refuse_other_shards(int installed, std::optional<int> wanted) {
  if (wanted && *wanted != installed) {
    throw Refused("the database was installed with " + std::to_string(installed) + " shards, the configuration says " +
                  std::to_string(*wanted) + ": the shard count never changes after installation");
  }
}

// Hundreds of new catalog rows would start autovacuum just when the first jobs arrive. Nothing depends on this analyze,
// so its failure is not reported.
void analyze_catalog(Session& session) {
  static_cast<void>(session.write([](pqxx::nontransaction& tx) {
    if (tx.exec1("SELECT pg_has_role(datdba, 'USAGE') FROM pg_database WHERE datname = current_database()")[0]
            .as<bool>()) {
      // The installation's own changes must be counted first. Behind a pooler they may still be counted later.
      tx.exec("SELECT pg_stat_force_next_flush()");
      tx.exec0("ANALYZE (SKIP_LOCKED) pg_attribute, pg_class, pg_constraint, pg_depend, pg_index, pg_proc, pg_type");
    }
  }));
}

}  // namespace

Result<int> migrate(Session& session, std::optional<int> shards,
                    const std::function<void(const std::string&)>& on_step) {
  if (shards && (*shards < 1 || *shards > kMaxShards)) {
    return Error{ErrorCode::invalid, "must be between 1 and " + std::to_string(kMaxShards), "shards"};
  }
  auto migrated = session.transact<int>([&](pqxx::work& tx) {
    tx.exec0("SET LOCAL statement_timeout = 0");
    tx.exec0("SET LOCAL lock_timeout = '60s'");
    tx.exec("SELECT pg_advisory_xact_lock(hashtextextended('tocsin.migrate', 0))");
    if (tx.exec1("SHOW server_encoding")[0].as<std::string>() != "UTF8")
      throw Refused("the database must have the encoding UTF8");
    const bool is_installed = !tx.exec1("SELECT to_regclass('tocsin.migration')")[0].is_null();
    const int installed =
        is_installed ? tx.exec1("SELECT coalesce(max(version), 0) FROM tocsin.migration")[0].as<int>() : 0;
    if (is_installed) {
      refuse_if_foreign(tx);
      refuse_if_newer(installed);
      refuse_other_shards(tx.exec1("SELECT tocsin.shard_count()")[0].as<int>(), shards);
    }
    tx.exec_params("SELECT set_config('tocsin.shards', $1, true)", std::to_string(shards.value_or(kDefaultShards)));
    int applied = 0;
    for (const Migration& migration : migrations()) {
      if (migration.version <= installed) continue;
      tx.exec(migration.sql);
      tx.exec_params0("INSERT INTO tocsin.migration (version, name) VALUES ($1, $2)", migration.version,
                      migration.name);
      on_step(migration.name);
      ++applied;
    }
    return applied;
  });
  const bool is_new = migrated && *migrated == static_cast<int>(migrations().size());
  if (is_new) analyze_catalog(session);
  return migrated;
}

Result<Installation> check_installation(Session& session, std::optional<int> expected_shards) {
  return session.read<Installation>([&](pqxx::nontransaction& tx) {
    if (tx.exec1("SELECT to_regclass('tocsin.migration')")[0].is_null()) {
      throw Refused("the database has no Tocsin schema: run `tocsin migrate`, or serve with --migrate");
    }
    const int installed = tx.exec1("SELECT coalesce(max(version), 0) FROM tocsin.migration")[0].as<int>();
    refuse_if_foreign(tx);
    refuse_if_newer(installed);
    if (installed < newest()) {
      throw Refused("the schema has version " + std::to_string(installed) + ", this binary needs " +
                    std::to_string(newest()) + ": run `tocsin migrate`, or serve with --migrate");
    }
    const int shards = tx.exec1("SELECT tocsin.shard_count()")[0].as<int>();
    refuse_other_shards(shards, expected_shards);
    if (tx.exec1("SHOW fsync")[0].as<std::string>() == "off")
      throw Refused("the server runs with fsync = off: it would lose acknowledged jobs");
    return Installation{shards, installed};
  });
}

}  // namespace tocsin

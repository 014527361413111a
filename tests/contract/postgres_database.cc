#include "contract/postgres_database.h"

#include <unistd.h>

#include <cstdlib>
#include <pqxx/pqxx>
#include <stdexcept>

#include "postgres/migrator.h"

namespace tocsin {
namespace {

std::string maintenance_url() {
  const char* url = std::getenv("TOCSIN_TEST_DATABASE");
  if (!url || !*url)
    throw std::runtime_error("TOCSIN_TEST_DATABASE is not set: it names a PostgreSQL where tests may create databases");
  return url;
}

// The same server and user, another database.
std::string url_of(const std::string& name) {
  std::string url = maintenance_url();
  const auto scheme = url.find("://");
  if (scheme == std::string::npos) return url + " dbname=" + name;
  const auto query = std::min(url.find('?', scheme), url.size());
  const auto path = std::min(url.find('/', scheme + 3), query);
  return url.replace(path, query - path, '/' + name);
}

void execute(const std::string& statement) {
  pqxx::connection connection(maintenance_url());
  pqxx::nontransaction(connection).exec(statement);
}

}  // namespace

PostgresDatabase::PostgresDatabase() : name_("tocsin_contract_" + std::to_string(getpid())), url_(url_of(name_)) {
  execute("CREATE DATABASE " + name_ + " TEMPLATE template0 ENCODING 'UTF8'");
  for (const char* setting : {"search_path = ''", "timezone = 'Asia/Kathmandu'", "datestyle = 'SQL, DMY'"})
    execute("ALTER DATABASE " + name_ + " SET " + setting);
  Session session({url_});
  const auto migrated = migrate(session, kShards, [](const std::string&) {});
  if (!migrated) throw std::runtime_error("the migration failed: " + migrated.error().message);
}

PostgresDatabase::~PostgresDatabase() {
  try {
    execute("DROP DATABASE " + name_ + " WITH (FORCE)");
  } catch (const std::exception&) {  // the server is gone, and the database with it
  }
}

void PostgresDatabase::lose_jobs() {
  pqxx::connection connection(url_);
  pqxx::work tx(connection);
  for (const char* table : {"job_live", "job_history", "job_count", "job_count_delta", "outbox", "relayed",
                            "report_slot", "report_created_day", "report_delay_day", "report_death"})
    tx.exec(std::string("DELETE FROM tocsin.") + table);
  tx.commit();
}

void PostgresDatabase::empty() {
  lose_jobs();
  pqxx::connection connection(url_);
  pqxx::work tx(connection);
  for (const char* table : {"biz_type", "node", "permit"}) tx.exec(std::string("DELETE FROM tocsin.") + table);
  tx.exec("ALTER TABLE tocsin.job_history DROP CONSTRAINT IF EXISTS refused");
  tx.exec("SELECT tocsin.set_shards_here(NULL) FROM tocsin.place WHERE shards IS NOT NULL");
  tx.exec("UPDATE tocsin.shard_map SET version = 0, owners = '{}'");
  tx.commit();
}

}  // namespace tocsin

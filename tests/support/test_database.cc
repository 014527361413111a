#include "support/test_database.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <map>
#include <stdexcept>

#include "support/process.h"
#include "support/server.h"

namespace tocsin {
namespace {

std::string maintenance_url() { return required_env("TOCSIN_TEST_DATABASE"); }

void maintain(const std::string& statement) { execute(maintenance_url(), statement); }

void drop(const std::string& name) noexcept {
  try {
    maintain("DROP DATABASE IF EXISTS " + name + " WITH (FORCE)");
  } catch (const std::exception&) {  // the server is gone, and the database with it
  }
}

std::string fresh_name() {
  static int n = 0;
  return "tocsin_test_" + std::to_string(getpid()) + "_" + std::to_string(++n);
}

// Runs scripts/postgres.sh; the first line that it prints.
std::string postgres_sh(std::vector<std::string> words) {
  words.insert(words.begin(), required_env("TOCSIN_POSTGRES_SH"));
  const Ran ran = run(words);
  if (ran.exit_code != 0) throw std::runtime_error("postgres.sh " + words.at(1) + " failed: " + ran.err);
  return ran.out.substr(0, ran.out.find('\n'));
}

void remove_server(const std::string& folder) noexcept {
  try {
    postgres_sh({"remove", folder});
  } catch (const std::exception&) {  // the test runner removes what is left
  }
}

// A migrated database that others are copied from: a tenth of the time that a migration takes.
class Template {
 public:
  explicit Template(int shards) {
    maintain("CREATE DATABASE " + name_ + " TEMPLATE template0 ENCODING 'UTF8'");
    const Ran ran =
        run_tocsin({"migrate", "--database", url_of(maintenance_url(), name_), "--shards", std::to_string(shards)});
    if (ran.exit_code != 0) throw std::runtime_error("the migration failed: " + ran.err);
  }
  ~Template() { drop(name_); }
  const std::string& name() const { return name_; }

 private:
  const std::string name_ = fresh_name();
};

// Dropped when all tests have run, before the statics of libpqxx go.
class Templates final : public ::testing::Environment {
 public:
  const std::string& with(int shards) {
    auto& wanted = templates_[shards];
    if (!wanted) wanted = std::make_unique<Template>(shards);
    return wanted->name();
  }
  void TearDown() override { templates_.clear(); }

 private:
  std::map<int, std::unique_ptr<Template>> templates_;
};

Templates& templates() {
  static Templates* all = static_cast<Templates*>(::testing::AddGlobalTestEnvironment(new Templates));
  return *all;
}
[[maybe_unused]] const Templates& registered_before_the_tests_run = templates();

}  // namespace

TestDatabase::TestDatabase(int shards) : shards_(shards), name_(fresh_name()), url_(url_of(maintenance_url(), name_)) {
  maintain("CREATE DATABASE " + name_ + " TEMPLATE " +
           (shards > 0 ? templates().with(shards) : "template0 ENCODING 'UTF8'"));
  for (const char* setting : {"search_path = ''", "timezone = 'Asia/Kathmandu'", "datestyle = 'SQL, DMY'"}) {
    maintain("ALTER DATABASE " + name_ + " SET " + setting);
  }
}

TestDatabase::~TestDatabase() {
  connection_.reset();
  drop(name_);
}

pqxx::result TestDatabase::query(const std::string& sql) {
  if (!connection_) connection_ = std::make_unique<pqxx::connection>(url_);
  return pqxx::nontransaction(*connection_).exec(sql);
}

std::int64_t TestDatabase::number(const std::string& sql) { return query(sql).at(0).at(0).as<std::int64_t>(); }

void TestDatabase::add_noop_type() {
  query(
      "INSERT INTO tocsin.biz_type (type_id, name, handler, ttr_ms, max_attempts, backoff, catch_up) OVERRIDING SYSTEM "
      "VALUE VALUES (1, 'noop', '{\"kind\":\"noop\"}', 30000, 3, '{}', '{}')");
}

void TestDatabase::place_all_shards_in(DatabaseId database_id) {
  query("UPDATE tocsin.shard_map SET version = version + 1, places = array_fill(" + std::to_string(database_id) +
        "::smallint, ARRAY[" + std::to_string(shards_) + "])");
}

PrivateCluster::PrivateCluster() {
  static int n = 0;
  folder_ = required_env("TOCSIN_TEST_DIR") + "/cluster-" + std::to_string(getpid()) + "-" + std::to_string(++n);
  start();
}

PrivateCluster::~PrivateCluster() { remove_server(folder_); }

void PrivateCluster::crash() { postgres_sh({"stop-immediate", folder_}); }
void PrivateCluster::start() { url_ = postgres_sh({"start", folder_}); }

PairOfServers::PairOfServers(int shards) : standby_(primary_.folder() + "-standby"), url_(primary_.url()) {
  const Ran ran = run_tocsin({"migrate", "--database", primary_.url(), "--shards", std::to_string(shards)});
  if (ran.exit_code != 0) throw std::runtime_error("the migration failed: " + ran.err);
  standby_url_ = postgres_sh({"standby", standby_, primary_.folder()});
  const auto host = standby_url_.find('@') + 1;
  url_.insert(url_.rfind('/'), "," + standby_url_.substr(host, standby_url_.rfind('/') - host));
  url_ += "?target_session_attrs=read-write";
}

PairOfServers::~PairOfServers() { remove_server(standby_); }

void PairOfServers::wait_for_standby() {
  pqxx::connection connection(primary_.url());
  pqxx::nontransaction tx(connection);
  const std::string end = tx.exec1("SELECT pg_current_wal_lsn()")[0].c_str();
  if (!eventually(
          [&] { return tx.exec("SELECT 1 FROM pg_stat_replication WHERE replay_lsn >= '" + end + "'").size() == 1; }))
    throw std::runtime_error("the standby does not follow");
}

void PairOfServers::stop_standby() {
  wait_for_standby();
  execute(standby_url_, "ALTER SYSTEM SET primary_conninfo = ''");
  execute(standby_url_, "SELECT pg_reload_conf()");
  pqxx::connection connection(standby_url_);
  pqxx::nontransaction tx(connection);
  if (!eventually([&] { return tx.exec("SELECT 1 FROM pg_stat_wal_receiver").empty(); }))
    throw std::runtime_error("the standby follows");
  is_stopped_ = true;
}

void PairOfServers::fail_over() {
  if (!is_stopped_) wait_for_standby();
  primary_.crash();
  postgres_sh({"promote", standby_});
}

}  // namespace tocsin

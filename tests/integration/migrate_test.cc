// Installing and upgrading the schema.
#include <gtest/gtest.h>

#include <random>

#include "postgres/queries.h"
#include "support/node_process.h"
#include "support/test_database.h"
#include "tocsin/shard.h"

namespace tocsin {
namespace {

Ran migrate(const TestDatabase& database, std::vector<std::string> options = {}) {
  std::vector<std::string> all{"migrate", "--database", database.url()};
  all.insert(all.end(), options.begin(), options.end());
  return run_tocsin(all);
}

// The reason a node gives for not starting.
Ran serve(const TestDatabase& database, std::vector<std::string> options = {}) {
  std::vector<std::string> all{"serve", "--database", database.url(), "--listen", "127.0.0.1:0"};
  all.insert(all.end(), options.begin(), options.end());
  return run_tocsin(all);
}

TEST(Migrate, InstallsOnceAndRecordsIt) {
  TestDatabase database(0);
  const Ran first = migrate(database);
  ASSERT_EQ(first.exit_code, 0) << first.err;
  EXPECT_NE(first.out.find("applied"), std::string::npos);
  const auto versions = database.number("SELECT count(*) FROM tocsin.migration");
  EXPECT_GE(versions, 1);
  EXPECT_EQ(database.number("SELECT tocsin.shard_count()"), kDefaultShards);

  const Ran second = migrate(database);
  EXPECT_EQ(second.exit_code, 0) << second.err;
  EXPECT_EQ(second.out.find("applied"), std::string::npos) << second.out;
  EXPECT_EQ(database.number("SELECT count(*) FROM tocsin.migration"), versions);
}

TEST(Migrate, TwoAtTheSameTimeInstallOnce) {
  TestDatabase database(0);
  const std::vector<std::string> command{
      required_env("TOCSIN_BINARY"), "migrate", "--database", database.url(), "--shards", "4"};
  Process one(command), other(command);
  EXPECT_EQ(one.wait(), 0) << one.err();
  EXPECT_EQ(other.wait(), 0) << other.err();
  EXPECT_NE(one.out().find("applied") == std::string::npos, other.out().find("applied") == std::string::npos);
  EXPECT_EQ(database.number("SELECT count(*) - count(DISTINCT version) FROM tocsin.migration"), 0);
}

TEST(Migrate, LeavesNothingInTheCatalogForAutovacuum) {
  TestDatabase database(0);
  const Ran done = migrate(database);
  ASSERT_EQ(done.exit_code, 0) << done.err;
  // An autovacuum worker may have come first. migrate skips the tables that it holds.
  const auto left = [&] {
    return database.number(
        "SELECT count(*) FROM pg_stat_sys_tables t WHERE schemaname = 'pg_catalog' AND relname IN "
        "('pg_attribute', 'pg_class', 'pg_constraint', 'pg_depend', 'pg_index', 'pg_proc', 'pg_type') "
        "AND NOT (analyze_count = 1 AND n_mod_since_analyze < 50) AND autovacuum_count + autoanalyze_count = 0 "
        "AND NOT EXISTS (SELECT FROM pg_locks l JOIN pg_stat_activity a USING (pid) WHERE l.relation = t.relid "
        "AND l.granted AND a.backend_type = 'autovacuum worker')");
  };
  // The second look is for a worker that ended between the reading of the counts and of the locks.
  EXPECT_TRUE(left() == 0 || left() == 0);
}

TEST(Migrate, NeedsNoMoreThanTheRightToCreate) {
  TestDatabase database(0);
  const auto name = database.query("SELECT current_database()")[0][0].as<std::string>();
  const std::string role = "creator_of_" + name;
  database.query("CREATE ROLE " + role + " LOGIN");
  database.query("GRANT CREATE ON DATABASE " + name + " TO " + role);
  const std::string separator = database.url().find('?') == std::string::npos ? "?" : "&";
  const Ran done = run_tocsin({"migrate", "--database", database.url() + separator + "user=" + role});
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(done.err, "");
  EXPECT_EQ(database.number("SELECT count(*) FROM pg_namespace WHERE nspname = 'tocsin' AND nspowner = '" + role +
                            "'::regrole"),
            1);
  EXPECT_EQ(database.number("SELECT analyze_count FROM pg_stat_sys_tables WHERE relname = 'pg_attribute'"), 0)
      << "the catalog belongs to somebody else";
  database.query("DROP OWNED BY " + role + " CASCADE");
  database.query("DROP ROLE " + role);
}

// One row in every shard, through the parent: fails when a shard has no table.
void fill_every_shard(TestDatabase& database, int shards) {
  database.query(
      "INSERT INTO tocsin.job_live (job_id, action_time, fire_at, gmt_create, gmt_modified, type_id, shard, "
      "max_attempts, biz_id) SELECT 1024 + n, now(), now(), now(), now(), 1, n, 16, 'key-' || n FROM "
      "generate_series(0, " +
      std::to_string(shards - 1) + ") n");
}

TEST(Migrate, TakesAnyShardCountOfTheContract) {
  for (const int shards : {1, 5, 1024}) {
    TestDatabase database(0);
    const Ran ran = migrate(database, {"--shards", std::to_string(shards)});
    ASSERT_EQ(ran.exit_code, 0) << ran.err;
    EXPECT_EQ(database.number("SELECT tocsin.shard_count()"), shards);
    EXPECT_EQ(database.number("SELECT count(*) FROM pg_inherits WHERE inhparent = 'tocsin.job_live'::regclass"),
              std::min(shards, sql::kLiveTables));
    fill_every_shard(database, shards);
    for (const int shard : {0, shards / 2, shards - 1}) {
      EXPECT_EQ(
          database.number("SELECT count(*) FROM " + sql::live_table(sql::live_table_of(static_cast<Shard>(shard))) +
                          " WHERE shard = " + std::to_string(shard)),
          1);
    }
  }
}

TEST(Migrate, RefusesASchemaFromBeforeTheFirstRelease) {
  TestDatabase database(8);
  database.query("UPDATE tocsin.migration SET name = '0001_core' WHERE version = 1");
  database.query("INSERT INTO tocsin.migration (version, name) SELECT n, 'step ' || n FROM generate_series(2, 12) n");
  for (const Ran& ran : {migrate(database), serve(database), serve(database, {"--migrate"})}) {
    EXPECT_EQ(ran.exit_code, 1);
    EXPECT_NE(ran.err.find("before 0.1.0"), std::string::npos) << ran.err;
    EXPECT_NE(ran.err.find("0001_core"), std::string::npos) << ran.err;
    EXPECT_NE(ran.err.find("empty database"), std::string::npos) << ran.err;
    EXPECT_EQ(ran.err.find("newer"), std::string::npos) << ran.err;
  }
  EXPECT_EQ(database.number("SELECT count(*) FROM tocsin.migration"), 12);
}

TEST(Migrate, RefusesAnyOtherShardCountAsBadUsage) {
  TestDatabase database(0);
  for (const char* shards : {"0", "1025", "-1", "many"}) {
    const Ran ran = migrate(database, {"--shards", shards});
    EXPECT_EQ(ran.exit_code, 2) << shards;
    EXPECT_NE(ran.err.find("--shards"), std::string::npos) << ran.err;
  }
  EXPECT_TRUE(database.query("SELECT to_regnamespace('tocsin')")[0][0].is_null());
}

TEST(Migrate, TheShardCountNeverChanges) {
  TestDatabase database(8);
  for (const Ran& ran : {migrate(database, {"--shards", "16"}), serve(database, {"--shards", "16"}),
                         serve(database, {"--migrate", "--shards", "16"})}) {
    EXPECT_EQ(ran.exit_code, 1);
    EXPECT_NE(ran.err.find("8 shards"), std::string::npos) << ran.err;
    EXPECT_NE(ran.err.find("16"), std::string::npos) << ran.err;
  }
  EXPECT_EQ(migrate(database, {"--shards", "8"}).exit_code, 0);
}

TEST(Migrate, ASchemaNewerThanTheBinaryIsLeftAlone) {
  TestDatabase database(8);
  database.query("INSERT INTO tocsin.migration (version, name) VALUES (9999, 'from the future')");
  for (const Ran& ran : {migrate(database), serve(database), serve(database, {"--migrate"})}) {
    EXPECT_EQ(ran.exit_code, 1);
    EXPECT_NE(ran.err.find("9999"), std::string::npos) << ran.err;
    EXPECT_NE(ran.err.find("newer"), std::string::npos) << ran.err;
  }
}

TEST(Migrate, ANodeWithoutASchemaSaysHowToGetOne) {
  TestDatabase database(0);
  const Ran ran = serve(database);
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_NE(ran.err.find("tocsin migrate"), std::string::npos) << ran.err;
}

TEST(Migrate, ServeCanDoItFirst) {
  TestDatabase database(0);
  NodeProcess node(database.url(), {"--migrate", "--shards", "2"});
  EXPECT_EQ(database.number("SELECT tocsin.shard_count()"), 2);
  EXPECT_EQ(node.stop(), 0);
}

// Keys of every length, from every plane of Unicode.
std::vector<std::string> hostile_keys(std::size_t n) {
  const std::vector<std::string> atoms{"a", "Z", "0",  " ",  "-",  "'", "\"", "\\", "%", "\t", "\n",     "é",
                                       "ß", "ñ", "订", "単", "한", "א", "م",  "😀",  "🚀", "𐍈",  "\u0301", "\u200d"};
  std::mt19937_64 random(5);
  std::vector<std::string> keys{"a", std::string(128, 'x'), std::string(127, 'y') + "z"};
  while (keys.size() < n) {
    const std::size_t length = 1 + random() % 128;
    std::string key;
    while (true) {
      const std::string& atom = atoms[random() % atoms.size()];
      if (key.size() + atom.size() > length) break;
      key += atom;
    }
    if (!key.empty()) keys.push_back(key);
  }
  return keys;
}

TEST(Migrate, SqlAndCppPutEveryKeyIntoTheSameShard) {
  TestDatabase database(8);
  pqxx::connection connection(database.url());
  pqxx::nontransaction tx(connection);
  connection.prepare(
      "shards",
      "SELECT tocsin.shard_of($1, 1), tocsin.shard_of($1, 8), tocsin.shard_of($1, 1000), tocsin.shard_of($1, 1024)");
  for (const std::string& key : hostile_keys(5000)) {
    const auto row = tx.exec_prepared1("shards", key);
    ASSERT_EQ(row[0].as<int>(), shard_of(key, 1)) << key;
    ASSERT_EQ(row[1].as<int>(), shard_of(key, 8)) << key;
    ASSERT_EQ(row[2].as<int>(), shard_of(key, 1000)) << key;
    ASSERT_EQ(row[3].as<int>(), shard_of(key, 1024)) << key;
  }
}

}  // namespace
}  // namespace tocsin

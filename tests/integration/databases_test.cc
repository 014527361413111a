// Nodes on several databases: what lives where, what happens when one of them dies, and what is refused.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "support/node_process.h"
#include "support/server.h"
#include "support/test_database.h"
#include "tocsin/shard.h"

namespace tocsin {
namespace {

using Urls = std::vector<std::string>;

std::vector<std::string> options_of(const Urls& urls) {
  std::vector<std::string> options;
  for (const std::string& url : urls) options.insert(options.end(), {"--database", url});
  return options;
}

Ran migrate(const Urls& urls, const std::vector<std::string>& more = {}) {
  std::vector<std::string> arguments{"migrate"};
  for (const std::string& option : options_of(urls)) arguments.push_back(option);
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_tocsin(arguments);
}

// Of a node that cannot start.
Ran serve(const Urls& urls) {
  std::vector<std::string> arguments{"serve", "--listen", "127.0.0.1:0"};
  for (const std::string& option : options_of(urls)) arguments.push_back(option);
  return run_tocsin(arguments);
}

void expect_refusal(const Ran& ran, const std::vector<std::string>& words) {
  EXPECT_EQ(ran.exit_code, 1) << ran.out << ran.err;
  for (const std::string& word : words)
    EXPECT_NE(ran.err.find(word), std::string::npos) << word << " is not in: " << ran.err;
}

std::int64_t number(const std::string& url, const std::string& sql) {
  pqxx::connection connection(url);
  return pqxx::nontransaction(connection).exec1(sql)[0].as<std::int64_t>();
}

class NodeOn {
 public:
  explicit NodeOn(Urls urls, std::vector<std::string> options = {}) {
    const std::string control = urls.front();
    urls.erase(urls.begin());
    for (const std::string& option : options_of(urls)) options.push_back(option);
    options.insert(options.end(), {"--heartbeat-timeout", "2s"});
    node_ = std::make_unique<NodeProcess>(control, options);
  }
  Rest& rest() { return node_->rest(); }
  NodeProcess& process() { return *node_; }

  void put_noop() { ASSERT_LT(rest().put("/v1/types/noop", {{"handler", {{"kind", "noop"}}}}).status, 300); }
  // The name of each shard's database.
  std::map<int, std::string> database_of_shards() {
    std::map<int, std::string> databases;
    for (std::string cursor;;) {
      const Reply page = rest().get("/v1/shards?limit=1000" + cursor);
      for (const Json& item : page.body["items"]) databases[item["shard"]] = item["database"];
      if (!page.body["next_cursor"].is_string()) return databases;
      cursor = "&cursor=" + page.body["next_cursor"].get<std::string>();
    }
  }
  // Business keys that live in this database.
  std::vector<std::string> keys_at(const std::string& database, std::size_t n) {
    const auto where = database_of_shards();
    std::vector<std::string> keys;
    for (int i = 0; keys.size() < n; ++i) {
      const std::string key = "k-" + std::to_string(i);
      if (where.at(shard_of(key, static_cast<int>(where.size()))) == database) keys.push_back(key);
    }
    return keys;
  }
  Reply create(const std::string& key, int delay_ms) {
    return rest().post("/v1/jobs", {{"biz_type", "noop"}, {"biz_id", key}, {"delay_ms", delay_ms}});
  }
  std::string check_of(const std::string& database) {
    return rest().get("/readyz").body["checks"].value("database " + database, "");
  }
  bool is_whole() { return rest().get("/readyz").body.value("status", "") == "ready"; }

 private:
  std::unique_ptr<NodeProcess> node_;
};

std::int64_t done_in(const std::string& url) {
  return number(url, "SELECT count(*) FROM tocsin.job WHERE status = 'done' AND attempts = 1");
}

// What a node answers while database b is down: the jobs of a are served, the others are missing by name.
void expect_degraded_without_b(NodeOn& node, const std::string& key_at_a, const std::string& key_at_b) {
  const Reply ready = node.rest().get("/readyz");
  EXPECT_EQ(ready.status, 200) << ready.text;
  EXPECT_EQ(ready.body["status"], "degraded");
  EXPECT_EQ(ready.body["checks"]["database a"], "ok");
  EXPECT_NE(node.rest().get("/metrics").text.find("tocsin_database_up{database=\"b\"} 0"), std::string::npos);
  const Reply list = node.rest().get("/v1/jobs");
  EXPECT_EQ(list.status, 200);
  EXPECT_EQ(list.body["missing"], Json::array({"b"}));
  EXPECT_EQ(list.body["items"].size(), 8U);
  const Reply batch =
      node.rest().post("/v1/jobs/batch", {{"jobs",
                                           {{{"biz_type", "noop"}, {"biz_id", key_at_a}, {"delay_ms", 1}},
                                            {{"biz_type", "noop"}, {"biz_id", key_at_b}, {"delay_ms", 1}}}}});
  EXPECT_EQ(batch.status, 503);
  EXPECT_TRUE(batch.body["items"][0].contains("job_id")) << batch.text;
  EXPECT_TRUE(batch.body["items"][1].contains("error")) << batch.text;
}

TEST(Databases, ACrashedOneDelaysOnlyItsOwnJobsUntilItIsBack) {
  PrivateCluster a, b;
  const Urls urls{"a=" + a.url(), "b=" + b.url()};
  ASSERT_EQ(migrate(urls, {"--shards", "8"}).exit_code, 0);
  NodeOn node(urls);
  node.put_noop();
  const auto at_a = node.keys_at("a", 8), at_b = node.keys_at("b", 8);
  std::set<std::string> ids;
  for (const std::string& key : at_b) {
    const Reply created = node.create(key, 2000);
    ASSERT_EQ(created.status, 201) << created.text;
    ids.insert(created.body["job_id"].get<std::string>());
  }
  EXPECT_EQ(number(b.url(), "SELECT count(*) FROM tocsin.job_live"), 8);
  EXPECT_EQ(number(a.url(), "SELECT count(*) FROM tocsin.job_live"), 0);
  EXPECT_EQ(node.check_of("b"), "ok");

  b.crash();
  const Reply refused = node.create(at_b[0], 1);
  EXPECT_EQ(refused.status, 503);
  EXPECT_NE(refused.text.find("database b ("), std::string::npos) << refused.text;
  for (const std::string& key : at_a) EXPECT_EQ(node.create(key, 500).status, 201);
  EXPECT_TRUE(eventually([&] { return done_in(a.url()) == 8; }));
  EXPECT_TRUE(eventually([&] { return node.check_of("b") == "does not answer"; }));
  expect_degraded_without_b(node, at_a[0], at_b[0]);

  // A type that b hears of later, and a node that starts meanwhile.
  ASSERT_EQ(node.rest().put("/v1/types/later", {{"handler", {{"kind", "noop"}}}}).status, 201);
  NodeOn second(urls);
  EXPECT_EQ(second.create(at_a[1], 1).status, 201);
  EXPECT_EQ(second.create(at_b[1], 1).status, 503);

  // The shards that live elsewhere are scanned as ever, and every node says so.
  for (NodeOn* asked : {&node, &second})
    EXPECT_TRUE(eventually([&] {
      bool is_as_it_is = true;
      const Reply shards = asked->rest().get("/v1/shards");
      for (const Json& item : shards.body["items"]) {
        const int age = item["scanned_age_ms"].is_null() ? -1 : item["scanned_age_ms"].get<int>();
        is_as_it_is = is_as_it_is && (item["database"] == "a" ? age >= 0 && age < 3000 : age < 0 || age > 4000);
      }
      return is_as_it_is;
    })) << asked->rest().get("/v1/shards").text;

  b.start();
  EXPECT_TRUE(eventually([&] { return node.is_whole() && second.is_whole(); }));
  EXPECT_TRUE(eventually([&] { return done_in(b.url()) == 8; }));
  for (const std::string& id : ids) EXPECT_EQ(second.rest().get("/v1/jobs/" + id).body["status"], "done");
  EXPECT_TRUE(eventually([&] { return number(b.url(), "SELECT count(*) FROM tocsin.biz_type") == 2; })) << "mirrored";
  EXPECT_EQ(second.create(at_b[2], 1).status, 201);
  EXPECT_TRUE(eventually([&] { return done_in(b.url()) == 9; }));
}

// Its sessions work, but what it does before it uses a database fails: it scans no shard there.
TEST(Databases, ANodeThatMayNotUseADatabaseTakesNoShardsThere) {
  PrivateCluster a, b;
  const Urls urls{"a=" + a.url(), "b=" + b.url()};
  ASSERT_EQ(migrate(urls, {"--shards", "8"}).exit_code, 0);
  NodeOn first(urls);
  first.put_noop();
  const auto keys = first.keys_at("b", 30);
  ASSERT_EQ(first.create(keys[0], 1).status, 201);
  ASSERT_TRUE(eventually([&] { return done_in(b.url()) == 1; }));
  execute(b.url(), "ALTER FUNCTION tocsin.ensure_history(date, date, text[]) RENAME TO hidden");
  NodeOn second(urls);
  EXPECT_NE(second.check_of("b"), "ok");
  // Due while the second joins, and takes its part of the other database.
  for (int i = 1; i < 30; ++i) ASSERT_EQ(first.create(keys[static_cast<std::size_t>(i)], 300 * i).status, 201);
  EXPECT_TRUE(eventually([&] { return done_in(b.url()) == 30; }));
  EXPECT_EQ(number(a.url(), "SELECT count(*) FROM tocsin.node"), 2) << "both are members";
}

TEST(Databases, WithoutTheControlDatabaseTheOthersContinue) {
  PrivateCluster a, b;
  const Urls urls{"a=" + a.url(), "b=" + b.url()};
  ASSERT_EQ(migrate(urls, {"--shards", "8"}).exit_code, 0);
  NodeOn node(urls);
  node.put_noop();
  auto keys = node.keys_at("b", 5);
  EXPECT_EQ(node.create(keys.back(), 1).status, 201);
  keys.pop_back();
  ASSERT_TRUE(eventually([&] { return done_in(b.url()) == 1; })) << "the node has its shards";
  const auto version = number(a.url(), "SELECT version FROM tocsin.shard_map");
  a.crash();
  EXPECT_TRUE(eventually([&] { return node.check_of("a") == "does not answer"; }));
  EXPECT_EQ(node.rest().get("/readyz").status, 200);
  for (const std::string& key : keys) EXPECT_EQ(node.create(key, 300).status, 201);
  EXPECT_TRUE(eventually([&] { return done_in(b.url()) == 5; })) << "long after its heartbeats went unanswered";
  a.start();
  EXPECT_TRUE(eventually([&] { return node.is_whole(); }));
  EXPECT_EQ(number(a.url(), "SELECT version FROM tocsin.shard_map"), version);
}

TEST(Databases, AStandbyIsRefusedByMigrateAndPickedUpWhenItIsPromoted) {
  PrivateCluster a, b;
  const Urls urls{"a=" + a.url(), "b=" + b.url()};
  ASSERT_EQ(migrate(urls, {"--shards", "8"}).exit_code, 0);
  execute(b.url(), "COPY (SELECT 1) TO PROGRAM 'cat > standby.signal'");
  b.crash();
  b.start();
  expect_refusal(migrate(urls), {"standby"});
  NodeOn node(urls);
  node.put_noop();
  EXPECT_NE(node.check_of("b"), "ok");
  EXPECT_EQ(node.create(node.keys_at("a", 1)[0], 1).status, 201);
  const std::string key = node.keys_at("b", 1)[0];
  EXPECT_EQ(node.create(key, 1).status, 503);
  execute(b.url(), "SELECT pg_promote()");
  EXPECT_TRUE(eventually([&] { return node.is_whole(); }));
  EXPECT_EQ(node.create(key, 1).status, 201);
  EXPECT_TRUE(eventually([&] { return done_in(b.url()) == 1; }));
}

TEST(Databases, EightWithAThousandShardsShareTheWorkOfOneNode) {
  std::vector<std::unique_ptr<TestDatabase>> databases;
  Urls urls;
  for (int i = 0; i < 8; ++i) {
    databases.push_back(std::make_unique<TestDatabase>(0));
    urls.push_back("db" + std::to_string(i) + "=" + databases.back()->url());
  }
  const Ran migrated = migrate(urls, {"--shards", "1024"});
  ASSERT_EQ(migrated.exit_code, 0) << migrated.err;
  NodeOn node(urls);
  node.put_noop();
  std::map<std::string, int> loads;
  for (const auto& [shard, name] : node.database_of_shards()) ++loads[name];
  EXPECT_EQ(loads.size(), 8U);
  for (const auto& [name, n] : loads) EXPECT_EQ(n, 128) << name;

  Json jobs = Json::array();
  for (int i = 0; i < 2000; ++i)
    jobs.push_back({{"biz_type", "noop"}, {"biz_id", "b-" + std::to_string(i)}, {"delay_ms", i % 1000}});
  const Reply created = node.rest().post("/v1/jobs/batch", {{"jobs", jobs}});
  ASSERT_EQ(created.status, 201) << created.text;
  std::set<std::string> ids;
  for (const Json& item : created.body["items"]) ids.insert(item["job_id"].get<std::string>());
  EXPECT_EQ(ids.size(), 2000U);
  EXPECT_TRUE(eventually([&] {
    std::int64_t done = 0;
    for (const auto& database : databases) done += done_in(database->url());
    return done == 2000;
  }));
  EXPECT_EQ(node.rest().get("/v1/stats").body["totals"]["done"], 2000);
  std::int64_t connections = 0;
  for (const auto& database : databases)
    connections += database->number(
        "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'tocsin%' AND"
        " datname = current_database()");
  EXPECT_LE(connections, 8 * 24) << "bounded";
}

TEST(Databases, ConsumersGetJobsOfEveryDatabase) {
  TestDatabase a(0), b(0);
  const Urls urls{"a=" + a.url(), "b=" + b.url()};
  ASSERT_EQ(migrate(urls, {"--shards", "8"}).exit_code, 0);
  NodeOn node(urls);
  ASSERT_EQ(node.rest().put("/v1/types/ticket", {{"handler", {{"kind", "pull"}}}}).status, 201);
  Json jobs = Json::array();
  for (int i = 0; i < 40; ++i)
    jobs.push_back({{"biz_type", "ticket"}, {"biz_id", "t-" + std::to_string(i)}, {"delay_ms", 0}});
  ASSERT_EQ(node.rest().post("/v1/jobs/batch", {{"jobs", jobs}}).status, 201);
  std::set<std::string> leased;
  EXPECT_TRUE(eventually([&] {
    const Reply reply = node.rest().post("/v1/types/ticket/lease", {{"max", 100}, {"wait_ms", 200}});
    Json items = Json::array();
    for (const Json& item : reply.body["items"]) {
      EXPECT_TRUE(leased.insert(item["job_id"].get<std::string>()).second);
      items.push_back({{"job_id", item["job_id"]}, {"lease_token", item["lease_token"]}});
    }
    if (!items.empty()) {
      const Reply acked = node.rest().post("/v1/leases/ack", {{"items", items}});
      for (const Json& item : acked.body["items"]) EXPECT_EQ(item["result"], "ok") << acked.text;
    }
    return leased.size() == 40;
  })) << leased.size();
  EXPECT_EQ(done_in(a.url()) + done_in(b.url()), 40);
  EXPECT_GT(done_in(a.url()) * done_in(b.url()), 0);
  EXPECT_EQ(node.rest().post("/v1/types/ticket/lease", {{"max", 1}}).body["items"].size(), 0U);
}

// What callers of the SQL functions see; what becomes of it is told in outbox_test.
TEST(Databases, SqlCreatesGoThroughTheOutboxWhereTheShardDoesNotLive) {
  TestDatabase a(0), b(0);
  const Urls urls{"a=" + a.url(), "b=" + b.url()};
  ASSERT_EQ(migrate(urls, {"--shards", "8"}).exit_code, 0);
  NodeOn node(urls);
  node.put_noop();
  const std::string at_a = node.keys_at("a", 1)[0], at_b = node.keys_at("b", 1)[0];
  const auto create = [](TestDatabase& database, const std::string& key) {
    return database
        .query("SELECT tocsin.create_job('noop', '" + key + "', clock_timestamp() + interval '1 hour')")[0][0]
        .as<std::int64_t>();
  };
  create(a, at_a);
  const auto id = create(b, at_b);
  for (const auto& [here, there, key] : {std::tuple(&a, &b, at_b), std::tuple(&b, &a, at_a)}) {
    const auto elsewhere = std::to_string(create(*here, key));
    EXPECT_TRUE(eventually(
        [&, t = there] { return t->number("SELECT count(*) FROM tocsin.job WHERE job_id = " + elsewhere) == 1; }));
    EXPECT_EQ(here->number("SELECT count(*) FROM tocsin.job WHERE job_id = " + elsewhere), 0);
  }
  // Nothing puts a live job where no node scans.
  try {
    a.query("INSERT INTO tocsin.job_live SELECT * FROM jsonb_populate_record(NULL::tocsin.job_live, '" +
            b.query("SELECT to_jsonb(j) FROM tocsin.job_live j LIMIT 1")[0][0].as<std::string>() + "')");
    ADD_FAILURE() << "created in the wrong place";
  } catch (const pqxx::sql_error& error) {
    EXPECT_EQ(error.sqlstate(), "TC001");
    EXPECT_NE(std::string(error.what()).find("does not live in the database a"), std::string::npos);
  }
  EXPECT_THROW(a.query("SELECT tocsin.cancel_job(" + std::to_string(id) + ")"), pqxx::sql_error) << "not 'not found'";
  EXPECT_EQ(b.query("SELECT tocsin.cancel_job(" + std::to_string(id) + ")")[0][0].as<std::string>(), "cancelled");
  EXPECT_EQ(a.query("SELECT string_agg(type_id || name, ',') FROM tocsin.biz_type")[0][0].as<std::string>(),
            b.query("SELECT string_agg(type_id || name, ',') FROM tocsin.biz_type")[0][0].as<std::string>());
}

TEST(Databases, ADatabaseThatIsAddedLaterGetsNoShardsAndOtherNumbers) {
  TestDatabase a(8), b(0);
  a.query(
      "INSERT INTO tocsin.biz_type (name, handler, ttr_ms, max_attempts, backoff, catch_up) VALUES"
      " ('t', '{\"kind\":\"noop\"}', 1000, 1, '{}', '{}')");
  const auto create = [&] {
    return a.number("SELECT tocsin.create_job('t', 'x', clock_timestamp() + interval '1 hour')") / 1024;
  };
  const auto first = create();
  EXPECT_EQ(create(), first + 1);
  EXPECT_EQ(a.number("SELECT count(*) FROM pg_constraint WHERE conname = 'lives_here'"), 0);
  const Urls urls{"a=" + a.url(), "b=" + b.url()};
  ASSERT_EQ(migrate({"a=" + a.url()}).exit_code, 0);
  const Ran added = migrate(urls);
  ASSERT_EQ(added.exit_code, 0) << added.err;
  EXPECT_NE(added.out.find("added the database b"), std::string::npos) << added.out;
  EXPECT_EQ(migrate(urls).exit_code, 0) << "safe to repeat";
  EXPECT_EQ(a.number("SELECT count(*) FROM tocsin.shard_map WHERE places = array_fill(0::smallint, ARRAY[8])"), 1);
  EXPECT_EQ(b.number("SELECT count(*) FROM tocsin.place WHERE shards = '{}' AND place = 1 AND name = 'b'"), 1);
  const auto after = create();
  EXPECT_GT(after, first + 1);
  EXPECT_EQ(after % kMaxDatabases, 0);
  EXPECT_EQ(b.number("SELECT nextval('tocsin.job_seq')") % kMaxDatabases, 1);
  EXPECT_GT(b.number("SELECT last_value FROM tocsin.job_seq"), first + 1);
  NodeOn node(urls);
  for (const auto& [shard, name] : node.database_of_shards()) EXPECT_EQ(name, "a");
}

TEST(Databases, MismatchedDatabasesAreRefused) {
  TestDatabase a(0), b(0), c(8);
  const std::string other = "b2=host=127.0.0.1 " + b.url().substr(0, 0) +
                            "port=" + std::string(pqxx::connection(b.url()).port()) +
                            " user=postgres dbname=" + pqxx::connection(b.url()).dbname();
  const Urls urls{"a=" + a.url(), "b=" + b.url()};
  expect_refusal(migrate({a.url(), b.url(), other}), {"the same database"});
  EXPECT_TRUE(a.query("SELECT to_regnamespace('tocsin')")[0][0].is_null()) << "nothing was done";
  ASSERT_EQ(migrate(urls, {"--shards", "8"}).exit_code, 0);
  expect_refusal(serve({a.url(), b.url(), other}), {"the same database"});
  expect_refusal(serve({a.url()}), {"'b'", "not given"});
  expect_refusal(serve({b.url(), a.url()}), {"another control database", "name that one first"});
  expect_refusal(serve({a.url(), b.url(), c.url()}), {"not registered", "tocsin migrate"});
  expect_refusal(serve({a.url(), "x=" + b.url()}), {"registered as 'b'", "never change"});
  expect_refusal(serve({a.url(), "postgresql://postgres@127.0.0.1:1/nobody", b.url()}), {"127.0.0.1:1/nobody"});
  c.query(
      "INSERT INTO tocsin.biz_type (name, handler, ttr_ms, max_attempts, backoff, catch_up) VALUES"
      " ('t', '{}', 1, 1, '{}', '{}')");
  expect_refusal(migrate({a.url(), b.url(), c.url()}), {"types of its own"});
  TestDatabase d(16), e(0);
  expect_refusal(migrate({a.url(), b.url(), d.url()}), {"16 shards"});
  ASSERT_EQ(migrate({e.url()}, {"--shards", "8"}).exit_code, 0);
  expect_refusal(migrate({e.url(), b.url()}), {"another installation"});
  // Constraint and map disagree: one of the databases was restored.
  b.query("SELECT tocsin.set_shards_here('{}')");
  expect_refusal(serve(urls), {"tocsin migrate"});
  EXPECT_EQ(migrate(urls).exit_code, 0);
  NodeOn node(urls);
}

TEST(Databases, AServerThatMayLoseWritesOfSqlCausesAWarning) {
  TestDatabase a(8);
  a.query("DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET synchronous_commit = off', current_database()); END $$");
  NodeOn node({a.url()});
  const auto is_warned_of = [&] {
    return node.rest().get("/readyz").body["warnings"].dump().find("synchronous_commit is off") != std::string::npos;
  };
  EXPECT_TRUE(is_warned_of()) << node.rest().get("/readyz").text;
  EXPECT_NE(node.process().log().find("synchronous_commit is off"), std::string::npos);

  // What is said is what is true with the next connection.
  const auto has_warnings = [&](bool wanted) {
    a.query(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'tocsin housekeeping'"
        " AND datname = current_database()");
    return eventually([&] { return is_warned_of() == wanted; });
  };
  a.query("DO $$ BEGIN EXECUTE format('ALTER DATABASE %I RESET synchronous_commit', current_database()); END $$");
  EXPECT_TRUE(has_warnings(false)) << node.rest().get("/readyz").text;
  a.query("DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET synchronous_commit = off', current_database()); END $$");
  EXPECT_TRUE(has_warnings(true)) << node.rest().get("/readyz").text;
}

// Each answers at the other's address from now on, with all sessions ended: what a promoted copy of the wrong database
// looks like to a node.
void swap_addresses(const std::string& one, const std::string& other) {
  const auto name = [](const std::string& url) { return url.substr(url.rfind('/') + 1); };
  const std::string server = required_env("TOCSIN_TEST_DATABASE"), a = name(one), b = name(other);
  for (const std::string& each : {a, b}) {
    execute(server, "ALTER DATABASE " + each + " ALLOW_CONNECTIONS false");
    execute(server, "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = '" + each + "'");
  }
  execute(server, "ALTER DATABASE " + a + " RENAME TO " + a + "_away");
  execute(server, "ALTER DATABASE " + b + " RENAME TO " + a);
  execute(server, "ALTER DATABASE " + a + "_away RENAME TO " + b);
  for (const std::string& each : {a, b}) execute(server, "ALTER DATABASE " + each + " ALLOW_CONNECTIONS true");
}

std::int64_t pending_in(const std::string& url) {
  return number(url, "SELECT count(*) FROM tocsin.job_live WHERE status = 0");
}

TEST(Databases, AnotherOneOfTheInstallationBehindAUrlIsRefused) {
  TestDatabase a(0), b(0), c(0);
  const Urls urls{"a=" + a.url(), "b=" + b.url(), "c=" + c.url()};
  ASSERT_EQ(migrate(urls, {"--shards", "9"}).exit_code, 0);
  NodeOn node(urls);
  node.put_noop();
  const auto at_a = node.keys_at("a", 1), at_b = node.keys_at("b", 2);
  ASSERT_EQ(node.create(at_b[0], 3'600'000).status, 201);
  swap_addresses(b.url(), c.url());
  EXPECT_TRUE(eventually([&] { return node.check_of("b").find("another database answers") != std::string::npos; }))
      << node.check_of("b");
  EXPECT_NE(node.check_of("b").find("'c'"), std::string::npos) << node.check_of("b");
  EXPECT_TRUE(eventually([&] { return node.check_of("c").find("another database answers") != std::string::npos; }));
  EXPECT_NE(node.process().log().find("another database answers"), std::string::npos);
  // Nothing is read, written or fired there.
  const Reply refused = node.create(at_b[1], 1);
  EXPECT_EQ(refused.status, 503) << refused.text;
  EXPECT_NE(refused.text.find("another database answers"), std::string::npos) << refused.text;
  execute(c.url(),
          "UPDATE tocsin.job_live SET fire_at = action_time - interval '1 h', action_time = action_time - "
          "interval '1 h'");
  ASSERT_EQ(node.create(at_a[0], 1).status, 201);
  EXPECT_TRUE(eventually([&] { return done_in(a.url()) == 1; }));
  EXPECT_EQ(pending_in(c.url()), 1);

  swap_addresses(b.url(), c.url());
  EXPECT_TRUE(eventually([&] { return node.is_whole() && done_in(b.url()) == 1; })) << node.check_of("b");
  EXPECT_EQ(node.create(at_b[1], 1).status, 201);
}

TEST(Databases, AnotherInstallationBehindTheOnlyUrlIsRefused) {
  TestDatabase a(8), b(0);
  ASSERT_EQ(migrate({b.url()}, {"--shards", "8"}).exit_code, 0);
  execute(b.url(),
          "INSERT INTO tocsin.biz_type (name, handler, ttr_ms, max_attempts, backoff, catch_up) VALUES"
          " ('noop', '{\"kind\":\"noop\"}', 60000, 3, '{}', '{}')");
  execute(b.url(), "SELECT tocsin.create_job('noop', 'stranger', clock_timestamp())");
  NodeOn node({a.url()});
  node.put_noop();
  const std::string name = node.rest().get("/v1/databases").text;
  swap_addresses(a.url(), b.url());
  EXPECT_TRUE(eventually([&] {
    return node.rest().get("/readyz").text.find("it belongs to another installation") != std::string::npos;
  })) << node.rest().get("/readyz").text;
  EXPECT_EQ(pending_in(a.url()), 1) << "at this address now";
  swap_addresses(a.url(), b.url());
  EXPECT_TRUE(eventually([&] { return node.is_whole(); }));
  EXPECT_EQ(node.create("k", 1).status, 201);
  EXPECT_TRUE(eventually([&] { return done_in(a.url()) == 1; }));
  EXPECT_EQ(pending_in(b.url()), 1);
}

}  // namespace
}  // namespace tocsin

// SQL as an interface: jobs created and cancelled inside a business's own transactions.
#include <atomic>
#include <future>
#include <regex>
#include <thread>

#include "integration/live_node.h"

namespace tocsin {
namespace {

class Sql : public LiveNode {
 protected:
  void SetUp() override {
    put_noop();
    database.query("CREATE TABLE public.orders (id text PRIMARY KEY)");
    shop = std::make_unique<pqxx::connection>(database.url());
  }
  std::string create_job(pqxx::transaction_base& tx, const std::string& biz_id, const std::string& delay,
                         const std::string& key = "NULL", const std::string& attribute = "NULL") {
    return tx
        .exec1("SELECT tocsin.create_job('noop', " + tx.quote(biz_id) + ", now() + '" + delay + "', " + attribute +
               ", " + key + ")")[0]
        .as<std::string>();
  }

  // Creates and leases so many jobs of the type `ticket`; their leases.
  Json lease_tickets(std::size_t n) {
    put_type("ticket", {{"handler", {{"kind", "pull"}}}, {"ttr_ms", 600'000}});
    for (std::size_t i = 0; i < n; ++i) create("ticket", 0);
    Json leases = Json::array();
    while (leases.size() < n) {
      const Reply reply = rest().post("/v1/types/ticket/lease", {{"max", n}, {"wait_ms", 30'000}});
      for (const Json& job : reply.body["items"])
        leases.push_back({{"job_id", job["job_id"]}, {"lease_token", job["lease_token"]}});
    }
    return leases;
  }
  static Json keyed(const std::string& biz_id) {
    return {{"biz_type", "noop"}, {"biz_id", biz_id}, {"delay_ms", 3'600'000}, {"idempotency_key", "key-1"}};
  }

  std::unique_ptr<pqxx::connection> shop;
};

// Open transactions, each in a session of its own, and calls that wait for them.
class Held {
 public:
  Held(TestDatabase& database, int port) : database_(database), port_(port) {}
  ~Held() { roll_back(); }

  pqxx::work& begin() {
    sessions_.push_back(std::make_unique<pqxx::connection>(database_.url()));
    return *open_.emplace_back(std::make_unique<pqxx::work>(*sessions_.back()));
  }
  // Posts on a thread, and expects the status.
  void post(const std::string& path, const Json& body, int status) {
    callers_.emplace_back([this, path, body, status] {
      const Reply reply = Rest(port_).post(path, body);
      EXPECT_EQ(reply.status, status) << path << ": " << reply.text;
      ++answered_;
    });
  }
  int answered() const { return answered_; }
  // Also waits for the answers.
  void roll_back() {
    open_.clear();
    for (std::thread& caller : std::exchange(callers_, {})) caller.join();
  }

 private:
  TestDatabase& database_;
  const int port_;
  std::vector<std::unique_ptr<pqxx::connection>> sessions_;
  std::vector<std::unique_ptr<pqxx::work>> open_;
  std::vector<std::thread> callers_;
  std::atomic<int> answered_{0};
};

TEST_F(Sql, ARolledBackOrderLeavesNoTimeout) {
  std::string id;
  {
    pqxx::work tx(*shop);
    tx.exec0("INSERT INTO public.orders VALUES ('o-1')");
    id = create_job(tx, "o-1", "0 s");
  }
  EXPECT_EQ(rest().get("/v1/jobs/" + id).status, 404);
  EXPECT_EQ(database.number("SELECT count(*) FROM tocsin.job"), 0);
  EXPECT_EQ(database.number("SELECT coalesce(sum(n), 0) FROM tocsin.job_stats"), 0);
}

TEST_F(Sql, ACommittedOrdersTimeoutFiresWithoutAScan) {
  ASSERT_TRUE(eventually([&] { return rest().get("/readyz").text.find("not listening") == std::string::npos; }));
  std::vector<std::string> ids;
  for (int i = 0; i < 10; ++i) {
    pqxx::work tx(*shop);
    ids.push_back(create_job(tx, "o-" + std::to_string(i), "100 ms"));
    tx.commit();
    ASSERT_TRUE(becomes(ids.back(), "done"));
  }
  EXPECT_EQ(database.number("SELECT count(*) FROM tocsin.job WHERE started_at < action_time"), 0);
  const std::string metrics = rest().get("/metrics").text;
  std::smatch sample;
  ASSERT_TRUE(std::regex_search(metrics, sample, std::regex(R"(\ntocsin_candidates_total(?:\{[^}]*\})? (\d+))")));
  // A scan comes once a second, and may be the first to find some of them.
  EXPECT_LT(std::stoi(sample[1]), 10) << "all were found by a scan";
}

TEST_F(Sql, TheSameKeyGivesTheSameJob) {
  pqxx::work tx(*shop);
  const std::string time = "'2040-01-01 00:00:00+00'";
  const auto call = [&](const std::string& attribute) {
    return tx.exec1("SELECT tocsin.create_job('noop', 'o-1', " + time + ", " + attribute + ", 'key-1')")[0]
        .as<std::string>();
  };
  const std::string first = call("'{\"a\": 1}'");
  EXPECT_EQ(call("'{\"a\": 1}'"), first);
  tx.commit();
  EXPECT_EQ(database.number("SELECT count(*) FROM tocsin.job"), 1);

  pqxx::work other(*shop);
  EXPECT_THROW(other.exec1("SELECT tocsin.create_job('noop', 'o-1', " + time + ", '{\"a\": 2}', 'key-1')"),
               pqxx::unique_violation);
}

TEST_F(Sql, RestAndSqlAgreeOnKeys) {
  const Reply made = rest().post("/v1/jobs", {{"biz_type", "noop"},
                                              {"biz_id", "o-1"},
                                              {"action_time", "2040-01-01T00:00:00Z"},
                                              {"attribute", {{"a", 1}}},
                                              {"idempotency_key", "key-1"}});
  ASSERT_EQ(made.status, 201) << made.text;
  pqxx::work tx(*shop);
  EXPECT_EQ(tx.exec1("SELECT tocsin.create_job('noop', 'o-1', '2040-01-01 00:00:00+00', '{\"a\": 1}', 'key-1')")[0]
                .as<std::string>(),
            made.body["job_id"].get<std::string>());
}

TEST_F(Sql, AKeyHeldByAnOpenTransactionDelaysNoOtherCreate) {
  pqxx::work open(*shop);
  create_job(open, "held", "1 hour", "'key-1'");
  const auto with_key = [](const std::string& biz_id) {
    return Json{{"biz_type", "noop"}, {"biz_id", biz_id}, {"delay_ms", 3'600'000}, {"idempotency_key", "key-1"}};
  };
  std::atomic<int> answered{0};
  std::vector<std::thread> callers;  // more than there are writers
  for (int i = 0; i < 3; ++i) {
    callers.emplace_back([&] {
      EXPECT_EQ(Rest(node().port()).post("/v1/jobs", with_key("held")).status, 503);
      ++answered;
    });
  }
  for (int i = 0; i < 50; ++i) EXPECT_EQ(rest().post("/v1/jobs", with_key("free-" + std::to_string(i))).status, 201);
  EXPECT_EQ(answered, 0) << "they wait for the holder";
  for (std::thread& caller : callers) caller.join();
}

// Two cancels would hold both writers of changes, and two keys those of keyed creates.
TEST_F(Sql, HeldCancelsAndKeysDelayNoVerb) {
  const Json leases = lease_tickets(2);
  const std::string cancelled = create("noop", 3'600'000), moved = create("noop", 3'600'000);
  create({{"biz_type", "noop"}, {"biz_id", "paid"}, {"delay_ms", 3'600'000}});
  Held held(database, node().port());
  for (int i = 0; i < 2; ++i) {
    const std::string id = create("noop", 3'600'000);
    EXPECT_EQ(held.begin().exec1("SELECT tocsin.cancel_job(" + id + ")")[0].as<std::string>(), "cancelled");
    held.post("/v1/jobs/" + id + "/cancel", Json::object(), 200);
  }
  for (int i = 0; i < 4; ++i) {
    const std::string biz_id = "held-" + std::to_string(i);
    create_job(held.begin(), biz_id, "1 hour", "'key-1'");
    held.post("/v1/jobs", keyed(biz_id), 201);
  }
  // They are on their way.
  EXPECT_TRUE(eventually([&] { return database.number("SELECT count(*) FROM pg_locks WHERE NOT granted") > 0; }));

  create("noop", 3'600'000);
  create(keyed("free"));
  EXPECT_EQ(rest().post("/v1/jobs/batch?partial=true", {{"jobs", Json::array({keyed("free-2")})}}).status, 201);
  EXPECT_EQ(status(moved), "pending");
  EXPECT_EQ(rest().get("/v1/jobs?biz_id=paid").body["items"].size(), 1U);
  EXPECT_EQ(rest().post("/v1/jobs/" + cancelled + "/cancel").status, 200);
  EXPECT_EQ(rest().post("/v1/jobs/cancel", {{"biz_id", "paid"}}).body["cancelled"].size(), 1U);
  EXPECT_EQ(rest().post("/v1/jobs/" + moved + "/reschedule", {{"delay_ms", 7'200'000}}).status, 200);
  const auto settle = [&](const std::string& verb, Json body) {
    const Reply reply = rest().post("/v1/leases/" + verb, body);
    EXPECT_EQ(reply.body["items"][0]["result"], "ok") << verb << ": " << reply.text;
  };
  settle("ack", {{"items", Json::array({leases[0]})}});
  settle("extend", {{"items", Json::array({leases[1]})}, {"ttr_ms", 600'000}});
  EXPECT_EQ(held.answered(), 0) << "what is held has delayed the others";
  held.roll_back();
  EXPECT_EQ(held.answered(), 6);
}

// By itself, alone in a batch, beside another, and in a batch that is undone as a whole.
TEST_F(Sql, TheErrorOfALockedKeyNamesNoSchemaObject) {
  pqxx::work open(*shop);
  create_job(open, "held", "1 hour", "'key-1'");
  const Json held{{"biz_type", "noop"}, {"biz_id", "held"}, {"delay_ms", 3'600'000}, {"idempotency_key", "key-1"}};
  const Json free{{"biz_type", "noop"}, {"biz_id", "free"}, {"delay_ms", 3'600'000}, {"idempotency_key", "key-1"}};
  const std::pair<const char*, Json> calls[] = {{"/v1/jobs", held},
                                                {"/v1/jobs/batch?partial=true", {{"jobs", Json::array({held})}}},
                                                {"/v1/jobs/batch?partial=true", {{"jobs", Json::array({free, held})}}},
                                                {"/v1/jobs/batch", {{"jobs", Json::array({held, free})}}}};
  std::vector<std::future<Reply>> replies;
  for (const auto& call : calls)
    replies.push_back(
        std::async(std::launch::async, [this, &call] { return Rest(node().port()).post(call.first, call.second); }));
  for (std::size_t i = 0; i < replies.size(); ++i) {
    const Reply reply = replies[i].get();
    const bool is_partial = i == 1 || i == 2;
    ASSERT_EQ(reply.status, is_partial ? 201 : 503) << reply.text;
    const Json& problem = is_partial ? reply.body.at("items").back().at("error") : reply.body;
    const auto detail = problem.at("detail").get<std::string>();
    EXPECT_TRUE(detail.starts_with("Another transaction ")) << detail;
    for (const char* word : {"ERROR", "CONTEXT", "index", "constraint", "relation", "tuple", "job_live", "tocsin"})
      EXPECT_EQ(detail.find(word), std::string::npos) << detail;
  }
}

// The xmin watermark tells by transaction ids how old a row can be that is still to come. So the id comes before the
// clock that a row's time is read from, and before anything that may wait.
TEST_F(Sql, ACreateHasItsTransactionIdBeforeItWaits) {
  const std::string moved = create("noop", 3'600'000);
  pqxx::work open(*shop);
  open.exec1("SELECT FROM tocsin.job_live WHERE job_id = " + moved + " FOR UPDATE");
  const std::string id = create_job(open, "held", "1 hour", "'key-1'");
  open.exec0("INSERT INTO tocsin.relayed (job_id, source, gmt_create, relayed_at) VALUES (4711, 1, now(), now())");
  database.query("ALTER FUNCTION tocsin.take_over SET lock_timeout = '30s'");  // 5 ms are too short to be seen
  const std::string calls[] = {
      "SELECT tocsin.create_job('noop', 'held', now() + '1 hour', NULL, 'key-1')",
      "SELECT tocsin.reschedule_job(" + moved + ", now() + '2 hours')",
      "SELECT tocsin.take_over(1::smallint, now() + '1 minute', '{4711}', '{1}', '{1}', '{f}', ARRAY[now()], "
      "ARRAY[now()], '{NULL}', '{NULL}', '{held}', '{NULL}', '{NULL}', '{NULL}')"};
  std::vector<std::thread> callers;
  for (const std::string& call : calls) {
    callers.emplace_back([this, &call] {
      pqxx::connection connection(database.url());
      pqxx::work tx(connection);
      try {
        tx.exec(call);
      } catch (const pqxx::sql_error&) {
        // its wait has ended
      }
    });
  }
  callers.emplace_back([this] {
    Rest(node().port())
        .post("/v1/jobs", {{"biz_type", "noop"}, {"biz_id", "held"}, {"delay_ms", 1000}, {"idempotency_key", "key-1"}});
  });
  for (const char* who : {"take_over(", "create_job(", "reschedule_job(", "CASE WHEN pg_current_xact_id()"}) {
    pqxx::result waiting;
    EXPECT_TRUE(eventually([&] {
      waiting = database.query(
          "SELECT backend_xid IS NOT NULL FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND "
          "strpos(query, '" +
          std::string(who) + "') > 0");
      return !waiting.empty();
    })) << who;
    if (!waiting.empty()) {
      EXPECT_TRUE(waiting[0][0].as<bool>()) << who;
    }
  }
  open.abort();
  for (std::thread& caller : callers) caller.join();
}

// As behind CREATE INDEX: the whole table is locked.
TEST_F(Sql, ACreateThatWaitsForATableHasItsTransactionId) {
  pqxx::work open(*shop);
  open.exec0("LOCK TABLE tocsin.job_live IN SHARE MODE");
  std::thread caller([this] {
    pqxx::connection connection(database.url());
    pqxx::work tx(connection);
    create_job(tx, "o-1", "1 hour");
    tx.commit();
  });
  pqxx::result waiting;
  EXPECT_TRUE(eventually([&] {
    waiting = database.query(
        "SELECT backend_xid IS NOT NULL FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND strpos(query, "
        "'create_job(') > 0");
    return !waiting.empty();
  }));
  EXPECT_TRUE(!waiting.empty() && waiting[0][0].as<bool>());
  open.abort();
  caller.join();
  EXPECT_EQ(count("pending"), 1);
}

TEST_F(Sql, WrongInputIsRefusedByName) {
  const std::pair<const char*, const char*> table[] = {
      {"'nonsense', 'o', now()", "biz_type"},
      {"NULL, 'o', now()", "biz_type"},
      {"'noop', '', now()", "biz_id"},
      {"'noop', NULL, now()", "biz_id"},
      {"'noop', repeat('x', 129), now()", "biz_id"},
      {"'noop', 'o', NULL", "action_time"},
      {"'noop', 'o', '1999-12-31 00:00:00+00'", "action_time"},
      {"'noop', 'o', now() + interval '51 years'", "action_time"},
      {"'noop', 'o', 'infinity'", "action_time"},
      {"'noop', 'o', now(), to_jsonb(repeat('x', 70000))", "attribute"},
      {"'noop', 'o', now(), (repeat('[', 32) || repeat(']', 32))::jsonb", "attribute"},
      {"'noop', 'o', now(), '[1e309]'", "attribute"},
      {"'noop', 'o', now(), NULL, ''", "idempotency_key"},
  };
  for (const auto& [arguments, field] : table) {
    pqxx::work tx(*shop);
    try {
      tx.exec1(std::string("SELECT tocsin.create_job(") + arguments + ")");
      ADD_FAILURE() << arguments;
    } catch (const pqxx::sql_error& error) {
      EXPECT_NE(std::string(error.what()).find(field), std::string::npos) << arguments << ": " << error.what();
    }
  }
  EXPECT_EQ(database.number("SELECT count(*) FROM tocsin.job_live"), 0);
  EXPECT_GT(database.number("SELECT tocsin.create_job('noop', 'o', now(), "
                            "(repeat('[', 31) || '1e308' || repeat(']', 31))::jsonb)"),
            0)
      << "as much as REST takes";
}

// The job was read before the other transaction ended it.
TEST_F(Sql, ALateReplaceReturnsTheCurrentStatus) {
  Json body{{"biz_type", "noop"},
            {"biz_id", "k"},
            {"delay_ms", 3'600'000},
            {"idempotency_key", "key"},
            {"on_conflict", "replace"}};
  const std::string id = create(body);
  pqxx::work tx(*shop);
  EXPECT_EQ(tx.exec1("SELECT tocsin.cancel_job(" + id + ")")[0].as<std::string>(), "cancelled");
  body["delay_ms"] = 7'200'000;
  auto reply = std::async(std::launch::async, [this, body] { return Rest(node().port()).post("/v1/jobs", body); });
  EXPECT_TRUE(eventually([&] { return database.number("SELECT count(*) FROM pg_locks WHERE NOT granted") > 0; }));
  tx.commit();
  const Reply told = reply.get();
  EXPECT_EQ(told.status, 409) << told.text;
  EXPECT_EQ(told.body.value("job_status", ""), "cancelled") << told.text;
}

TEST_F(Sql, CancelAnswersDefinitely) {
  std::string id;
  {
    pqxx::work tx(*shop);
    id = create_job(tx, "o-1", "1 hour");
    tx.commit();
  }
  const auto cancel = [&](const std::string& job) {
    return database.query("SELECT tocsin.cancel_job(" + job + ")")[0][0].as<std::string>();
  };
  {
    pqxx::work tx(*shop);
    EXPECT_EQ(tx.exec1("SELECT tocsin.cancel_job(" + id + ")")[0].as<std::string>(), "cancelled");
  }
  EXPECT_EQ(status(id), "pending") << "rolled back";
  EXPECT_EQ(cancel(id), "cancelled");
  EXPECT_EQ(status(id), "cancelled");
  EXPECT_EQ(cancel(id), "finished");
  for (const char* no_id : {"1024", "-1", "0"}) {
    EXPECT_EQ(cancel(no_id), "not found");
    EXPECT_EQ(database.query("SELECT tocsin.reschedule_job(" + std::string(no_id) + ", now())")[0][0].as<std::string>(),
              "not found");
  }

  receiver.hold();
  put_type("held", {{"handler", receiver.handler()}});
  const std::string running = create("held", 0);
  ASSERT_TRUE(becomes(running, "running"));
  EXPECT_EQ(cancel(running), "running");
}

TEST_F(Sql, TheViewAndTheStatisticsAgreeWithRest) {
  const std::string pending = create("noop", 3'600'000), done = create("noop", 0),
                    cancelled = create("noop", 3'600'000);
  ASSERT_TRUE(becomes(done, "done"));
  ASSERT_EQ(rest().post("/v1/jobs/" + cancelled + "/cancel").status, 200);
  for (const std::string& id : {pending, done, cancelled}) {
    const Json told = job(id);
    const auto row =
        database.query("SELECT biz_id, biz_type, status, attempts, shard FROM tocsin.job WHERE job_id = " + id)[0];
    EXPECT_EQ(row[0].as<std::string>(), told["biz_id"]);
    EXPECT_EQ(row[1].as<std::string>(), told["biz_type"]);
    EXPECT_EQ(row[2].as<std::string>(), told["status"]);
    EXPECT_EQ(row[3].as<int>(), told["attempts"].get<int>());
    EXPECT_EQ(row[4].as<int>(), told["shard"].get<int>());
  }
  for (const char* status : {"pending", "done", "cancelled"}) {
    EXPECT_EQ(database.number("SELECT n FROM tocsin.job_stats WHERE biz_type = 'noop' AND status = '" +
                              std::string(status) + "'"),
              1)
        << status;
  }
  EXPECT_EQ(database.number("SELECT sum(n) FROM tocsin.job_stats"), 3);
}

TEST(SqlViews, ShowNoCopiesOfAShardThatLivesElsewhere) {
  TestDatabase copy(8);  // as the target of a move that waits: rows are there, the shard is not
  copy.query(
      "INSERT INTO tocsin.biz_type (name, handler, ttr_ms, max_attempts, backoff, catch_up) VALUES ('t',"
      " '{\"kind\":\"noop\"}', 1000, 1, '{}', '{}')");
  copy.query(
      "INSERT INTO tocsin.job_live (job_id, action_time, fire_at, gmt_create, gmt_modified, type_id, shard,"
      " max_attempts, biz_id) SELECT 1024 + s, now(), now(), now(), now(), 1, s, 1, 'a' FROM generate_series(0, 7) s");
  copy.query(
      "INSERT INTO tocsin.job_history (job_id, action_time, fire_at, gmt_create, finished_at, type_id, shard, status,"
      " attempts, max_attempts, biz_id) SELECT 2048 + s, now(), now(), now(), now(), 1, s, 2, 1, 1, 'a' FROM"
      " generate_series(0, 7) s");
  const auto shown = [&] { return copy.number("SELECT count(*) FROM tocsin.job"); };
  EXPECT_EQ(shown(), 16);
  copy.query("SELECT tocsin.set_shards_here('{1,2}')");
  EXPECT_EQ(shown(), 4);
  copy.query("SELECT tocsin.set_shards_here('{}')");
  EXPECT_EQ(shown(), 0);
}

}  // namespace
}  // namespace tocsin

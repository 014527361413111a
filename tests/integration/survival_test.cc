// What is acknowledged is kept, whatever dies: the node by signal, the database by crash, the connections between them.
#include <signal.h>

#include <algorithm>

#include "integration/live_node.h"
#include "integration/load.h"
#include "postgres/session.h"
#include "support/server.h"

namespace tocsin {
namespace {

// Jobs by status, straight from the tables.
std::set<std::string> ids_with(pqxx::connection& connection, const std::string& status) {
  std::set<std::string> ids;
  pqxx::nontransaction tx(connection);
  for (const auto& row : tx.exec("SELECT job_id FROM tocsin.job WHERE status = " + tx.quote(status)))
    ids.insert(row[0].as<std::string>());
  return ids;
}

bool all_done(const std::string& url, const std::set<std::string>& wanted) {
  pqxx::connection connection(url);
  return eventually([&] {
    const auto done = ids_with(connection, "done");
    return std::ranges::includes(done, wanted);
  });
}

class Survival : public LiveNode {
 protected:
  // Jobs that were created in a batch; their ids.
  std::vector<std::string> create_batch(const std::string& type, int n, int delay_ms, int spread_ms) {
    Json jobs = Json::array();
    for (int i = 0; i < n; ++i) {
      jobs.push_back({{"biz_type", type},
                      {"biz_id", "b-" + std::to_string(++last_)},
                      {"delay_ms", delay_ms + i % std::max(1, spread_ms)}});
    }
    const Reply reply = rest().post("/v1/jobs/batch", {{"jobs", jobs}});
    EXPECT_EQ(reply.status, 201) << reply.text;
    std::vector<std::string> ids;
    for (const Json& item : reply.body["items"]) ids.push_back(item["job_id"]);
    return ids;
  }
  // What the check of the only database says begins with the text soon. The node stays ready.
  void expect_degraded(const std::string& text) {
    Reply ready;
    EXPECT_TRUE(eventually([&] { return (ready = rest().get("/readyz")), database_says(ready, text); })) << ready.text;
    EXPECT_EQ(ready.status, 200) << "without it the other nodes would be later still";
    EXPECT_EQ(ready.body["status"], "degraded") << ready.text;
  }
  void expect_well() {
    Reply ready;
    EXPECT_TRUE(eventually([&] { return (ready = rest().get("/readyz")), database_says(ready, "ok"); })) << ready.text;
    EXPECT_TRUE(eventually([&] { return rest().get("/readyz").body["status"] == "ready"; }));
  }

 private:
  static bool database_says(const Reply& ready, const std::string& text) {
    const Json checks = ready.body.value("checks", Json::object());
    for (const auto& [name, state] : checks.items())
      if (name.starts_with("database ")) return state.get<std::string>().starts_with(text);
    return false;
  }

  int last_ = 0;
};

TEST_F(Survival, ANodeWhoseScansCannotKeepUpReportsIt) {
  ASSERT_TRUE(node().is_ready());
  pqxx::connection stranger(database.url());
  pqxx::work lock(stranger);
  lock.exec("LOCK TABLE tocsin.job_live_0000 IN ACCESS EXCLUSIVE MODE");
  expect_degraded("scans are behind: ");
  lock.abort();
  expect_well();
}

TEST_F(Survival, ANodeThatWritesNoOutcomesReportsIt) {
  // Outcomes are stuck after a third of it, and given up when their leases end.
  put_type("short", {{"handler", receiver.handler()}, {"ttr_ms", 6000}});
  ASSERT_TRUE(becomes(create("short", 0), "done"));
  pqxx::connection stranger(database.url());
  pqxx::work lock(stranger);
  lock.exec("LOCK TABLE tocsin.job_history_done IN SHARE MODE");  // creates only read it
  create("short", 0);
  expect_degraded("writes no outcomes of handlers");
  lock.abort();
  expect_well();
}

TEST_F(Survival, ATerminatedNodeLetsItsHandlersFinish) {
  receiver.hold();
  put_type("slow", {{"handler", receiver.handler()}});
  const std::string id = create("slow", 0);
  ASSERT_TRUE(eventually([&] { return receiver.count() == 1; }));
  node().process().signal(SIGTERM);
  ASSERT_TRUE(eventually([&] { return !node().is_ready(); })) << "refuses new work at once";
  EXPECT_TRUE(node().process().is_running()) << "waits for the handler";
  receiver.release();
  EXPECT_EQ(node().process().wait(), 0);
  EXPECT_EQ(count("done"), 1);
  EXPECT_EQ(database.number("SELECT attempts FROM tocsin.job WHERE job_id = " + id), 1);
}

TEST_F(Survival, ATerminatedNodeEndsInTimeAndReleasesWhatHasNotStarted) {
  start({"--drain-timeout", "500ms"});
  receiver.hold();
  put_type("slow", {{"handler", receiver.handler()}, {"max_running", 2}});
  create_batch("slow", 20, 0, 1);
  ASSERT_TRUE(eventually([&] { return receiver.count() == 2; }));
  EXPECT_EQ(node().stop(), 0);
  EXPECT_EQ(count("pending"), 20) << "nothing is left claimed";
  EXPECT_EQ(database.number("SELECT count(*) FROM tocsin.job WHERE attempts > 0"), 2) << "only what ran counts";
  EXPECT_EQ(database.number("SELECT count(*) FROM tocsin.job WHERE jsonb_array_length(errors) > 0"), 2);
  EXPECT_EQ(database.number("SELECT count(*) FROM tocsin.node"), 0) << "it left the membership";

  receiver.release();
  start();
  EXPECT_TRUE(eventually([&] { return count("done") == 20; }));
}

TEST_F(Survival, ATerminatedNodeLosesNothingUnderLoad) {
  put_noop();
  Load load(node().port(), "noop", 4, 200);
  ASSERT_TRUE(eventually([&] { return load.acknowledged() > 500; }));
  EXPECT_EQ(node().stop(), 0);
  load.stop();
  start();
  EXPECT_TRUE(all_done(database.url(), load.ids()));
}

TEST_F(Survival, AKilledNodeLosesNothing) {
  put_noop();
  put_type("hook", {{"handler", receiver.handler()}, {"ttr_ms", 2000}});
  std::set<std::string> ids;
  for (const auto& [type, n] : {std::pair("noop", 4000), std::pair("hook", 1000)}) {
    for (const std::string& id : create_batch(type, n, 0, 2000)) ids.insert(id);
  }
  ASSERT_TRUE(eventually([&] { return receiver.count() > 100; }));
  node().kill();
  EXPECT_GT(count("pending") + count("running"), 0) << "killed in the middle";
  start();
  EXPECT_TRUE(all_done(database.url(), ids));
  EXPECT_EQ(database.number("SELECT count(*) FROM tocsin.job"), 5000);
  EXPECT_EQ(database.number("SELECT sum(n) FROM tocsin.job_stats"), 5000);
  // At least once: those that were running when it died were delivered again, the others once.
  std::map<std::string, int> times;
  for (const Delivery& delivery : receiver.deliveries()) ++times[delivery.headers.at("webhook-id")];
  EXPECT_EQ(times.size(), 1000U);
  EXPECT_EQ(database.number("SELECT count(*) FROM tocsin.job WHERE biz_type = 'noop' AND attempts <> 1"), 0);
}

TEST_F(Survival, LostConnectionsAreReopenedAndNothingIsLost) {
  put_noop();
  put_type("hook", {{"handler", receiver.handler()}, {"ttr_ms", 3000}});
  Load instant(node().port(), "noop", 2, 100), hooks(node().port(), "hook", 2, 100);
  for (int i = 1; i <= 5; ++i) {
    const auto before = instant.acknowledged();
    ASSERT_TRUE(eventually([&] { return instant.acknowledged() > before + 100; })) << "round " << i;
    EXPECT_GT(
        database.number(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name LIKE 'tocsin%' AND"
            " datname = current_database()"),
        0);
  }
  instant.stop();
  hooks.stop();
  EXPECT_TRUE(all_done(database.url(), instant.ids()));
  EXPECT_TRUE(all_done(database.url(), hooks.ids()));
  EXPECT_EQ(database.number("SELECT count(*) FROM tocsin.job WHERE started_at < action_time"), 0);
  EXPECT_TRUE(eventually([&] { return node().is_ready(); }));
}

TEST(SurvivalOfTheDatabase, ACrashCostsNoAcknowledgedJobAndNoRestartOfTheNode) {
  PrivateCluster cluster;
  WebhookReceiver receiver;
  NodeProcess node(cluster.url(), {"--migrate", "--shards", "8"});
  ASSERT_EQ(node.rest().put("/v1/types/noop", {{"handler", {{"kind", "noop"}}}}).status, 201);
  ASSERT_EQ(node.rest().put("/v1/types/hook", {{"handler", receiver.handler()}, {"ttr_ms", 3000}}).status, 201);
  Load instant(node.port(), "noop", 2, 300), hooks(node.port(), "hook", 2, 300);
  ASSERT_TRUE(eventually([&] { return instant.acknowledged() > 300 && hooks.acknowledged() > 300; }));

  cluster.crash();
  EXPECT_TRUE(eventually([&] { return Rest(node.port()).get("/readyz").status == 503; }));
  EXPECT_EQ(node.rest().get("/healthz").status, 200) << "the process itself is well";
  const Reply refused = node.rest().post("/v1/jobs", {{"biz_type", "noop"}, {"biz_id", "a"}, {"delay_ms", 1}});
  EXPECT_EQ(refused.status, 503) << refused.text;
  cluster.start();
  EXPECT_TRUE(eventually([&] { return node.is_ready(); }));

  const auto before = instant.acknowledged();
  EXPECT_TRUE(eventually([&] { return instant.acknowledged() > before + 300; })) << "takes jobs again";
  instant.stop();
  hooks.stop();
  EXPECT_TRUE(node.process().is_running());
  EXPECT_TRUE(all_done(cluster.url(), instant.ids()));
  EXPECT_TRUE(all_done(cluster.url(), hooks.ids()));
  EXPECT_EQ(node.stop(), 0);
}

TEST(SurvivalOfTheDatabase, AnOutageIsNotAnEmptyLeaseAndDoesNotFillTheLog) {
  PrivateCluster cluster;
  NodeProcess node(cluster.url(), {"--migrate", "--shards", "8"});
  ASSERT_EQ(node.rest().put("/v1/types/pull", {{"handler", {{"kind", "pull"}}}}).status, 201);
  const auto lease = [&] {
    return Rest(node.port()).post("/v1/types/pull/lease", {{"max", 1}, {"wait_ms", 0}}).status;
  };
  ASSERT_EQ(lease(), 200);
  cluster.crash();
  EXPECT_TRUE(eventually([&] { return lease() == 503; }));
  EXPECT_EQ(Rest(node.port()).get("/readyz").body["checks"].value("notifications", ""),
            "waiting for a database that does not answer");
  EXPECT_TRUE(eventually([&] { return node.log().find("the membership lease has ended") != std::string::npos; }));
  cluster.start();
  EXPECT_TRUE(eventually([&] { return node.is_ready() && lease() == 200; }));
  EXPECT_TRUE(eventually([&] { return node.log().find("the membership lease is extended") != std::string::npos; }));
  const std::string log = node.log();
  const auto times = [&](const std::string& text) {
    int n = 0;
    for (auto at = log.find(text); at != log.npos; at = log.find(text, at + 1)) ++n;
    return n;
  };
  EXPECT_GE(times("does not answer:"), 1) << log;
  EXPECT_LE(times("does not answer:"), 2) << "not with each failure; a machine that stands still may add one: " << log;
  EXPECT_GE(times("answers again"), 1) << log;
  EXPECT_EQ(node.stop(), 0);
}

TEST(SurvivalOfTheDatabase, APrimaryThatWasDemotedAndStaysUpIsNotReadAnyLonger) {
  PrivateCluster cluster;
  Session session({cluster.url()});
  const auto reads = [&] {
    return session.read<bool>([](pqxx::nontransaction& tx) {
      tx.exec("SELECT 1");
      return true;
    });
  };
  ASSERT_TRUE(reads());
  const auto demote = [&](const char* value) {
    execute(cluster.url(), std::string("ALTER SYSTEM SET default_transaction_read_only = ") + value);
    execute(cluster.url(), "SELECT pg_reload_conf()");
  };
  demote("on");
  EXPECT_TRUE(eventually([&] { return !reads(); })) << "what it says may be the past";
  EXPECT_FALSE(reads()) << "and it is not connected to again";
  demote("off");
  EXPECT_TRUE(eventually([&] { return reads().ok(); }));
}

}  // namespace
}  // namespace tocsin

// Bulk operations on PostgreSQL, and what the audit log keeps of them.
#include <filesystem>
#include <fstream>

#include "integration/live_node.h"

namespace tocsin {
namespace {

class Bulks : public LiveNode {
 public:
  // Starts one and waits for its end.
  Json run_bulk(const Json& request) {
    const Reply started = rest().post("/v1/bulk", request);
    EXPECT_EQ(started.status, 202) << started.text;
    return wait_for(started.body.value("bulk_id", std::string("0")));
  }
  Json wait_for(const std::string& id) {
    Json bulk;
    EXPECT_TRUE(eventually([&] {
      bulk = rest().get("/v1/bulk/" + id).body;
      return bulk["state"] != "running";
    })) << bulk;
    return bulk;
  }
  // n pending jobs of distinct keys, an hour ahead.
  void create_jobs(const std::string& type, int n) {
    database.query("SELECT tocsin.create_job('" + type + "', 'o-' || i, clock_timestamp() + interval '1 hour' + i * " +
                   "interval '1 second') FROM generate_series(1, " + std::to_string(n) + ") i");
  }
};

TEST_F(Bulks, CancelAllOfAType) {
  put_noop();
  put_type("other", {{"handler", {{"kind", "noop"}}}});
  create_jobs("noop", 1200);
  create_jobs("other", 3);
  const Reply counted =
      rest().post("/v1/bulk", {{"action", "cancel"}, {"filter", {{"biz_type", "noop"}}}, {"dry_run", true}});
  EXPECT_EQ(counted.body["matched"], 1200);
  const Json ended = run_bulk({{"action", "cancel"}, {"filter", {{"biz_type", "noop"}}}, {"expected", 1200}});
  EXPECT_EQ(ended["state"], "done");
  EXPECT_EQ(ended["changed"], 1200);
  EXPECT_EQ(ended["missed"], 0);
  EXPECT_EQ(count("cancelled"), 1200);
  EXPECT_EQ(count("pending"), 3);
}

TEST_F(Bulks, ChangeOnlyWhatTheFilterNames) {
  put_noop();
  create_jobs("noop", 100);
  const std::string from = database
                               .query(
                                   "SELECT to_char((min(action_time) + interval '10 seconds') AT TIME ZONE 'UTC', "
                                   "'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"') FROM tocsin.job")[0][0]
                               .c_str();
  const Json ended = run_bulk({{"action", "cancel"}, {"filter", {{"from", from}}}});
  EXPECT_EQ(ended["changed"], 90);
  EXPECT_EQ(run_bulk({{"action", "run"}, {"filter", {{"biz_id", "o-1"}}}})["changed"], 1);
  EXPECT_TRUE(eventually([&] { return count("done") == 1; }));
}

TEST_F(Bulks, SpreadAPeak) {
  put_noop();
  database.query("SELECT tocsin.create_job('noop', 'o-' || i, '2030-01-01 00:00Z') FROM generate_series(1, 2000) i");
  const Json ended = run_bulk({{"action", "reschedule"},
                               {"filter", {{"biz_type", "noop"}}},
                               {"action_time", "2030-01-01T00:00:00Z"},
                               {"spread_ms", 600'000}});
  EXPECT_EQ(ended["changed"], 2000);
  EXPECT_EQ(database.number("SELECT count(*) FROM tocsin.job WHERE action_time < '2030-01-01 00:00Z' OR action_time >= "
                            "'2030-01-01 00:10Z'"),
            0);
  EXPECT_GT(database.number("SELECT min(n) FROM (SELECT count(*) AS n FROM tocsin.job GROUP BY date_trunc('minute', "
                            "action_time)) m"),
            100)
      << "200 in each of ten minutes, were it exact";
}

TEST_F(Bulks, RetryTheDeadOfOneReason) {
  receiver.answer(410);
  put_type("gone", {{"handler", receiver.handler()}});
  for (int i = 0; i < 5; ++i) create("gone", 0);
  ASSERT_TRUE(eventually([&] { return count("dead") == 5; }));
  receiver.answer(204);
  const std::string reason =
      database.query("SELECT DISTINCT tocsin.death_reason(errors -> -1 ->> 'message') FROM tocsin.job")[0][0].c_str();
  EXPECT_EQ(run_bulk({{"action", "retry"}, {"filter", {{"reason", "another reason"}}}})["changed"], 0);
  EXPECT_EQ(run_bulk({{"action", "retry"}, {"filter", {{"reason", reason}}}})["changed"], 5);
  EXPECT_TRUE(eventually([&] { return count("done") == 5; }));
}

TEST_F(Bulks, ALockedJobDoesNotDelayTheOthers) {
  put_noop();
  create_jobs("noop", 50);
  pqxx::connection other(database.url());
  pqxx::work holding(other);
  holding.exec("SELECT FROM tocsin.job_live WHERE biz_id = 'o-7' FOR UPDATE");
  const Json ended = run_bulk({{"action", "cancel"}, {"filter", {{"biz_type", "noop"}}}});
  EXPECT_EQ(ended["state"], "done");
  EXPECT_EQ(ended["changed"], 49);
  EXPECT_EQ(ended["missed"], 1);
  holding.abort();
  EXPECT_EQ(count("pending"), 1);
}

TEST_F(Bulks, StopAtOnceWithDefiniteNumbers) {
  put_noop();
  create_jobs("noop", 100);
  const Reply started =
      rest().post("/v1/bulk", {{"action", "cancel"}, {"filter", {{"biz_type", "noop"}}}, {"rate_per_s", 5}});
  const std::string id = started.body["bulk_id"];
  EXPECT_EQ(rest().post("/v1/bulk/" + id + "/stop").status, 200);
  const Json ended = wait_for(id);
  EXPECT_EQ(ended["state"], "stopped");
  EXPECT_EQ(ended["changed"].get<std::int64_t>(), count("cancelled"));
  EXPECT_EQ(ended["changed"].get<std::int64_t>() + ended["missed"].get<std::int64_t>(), 100);
}

TEST_F(Bulks, AQueuedOperationIsStoppedAtOnce) {
  put_noop();
  put_type("other", {{"handler", {{"kind", "noop"}}}});
  create_jobs("noop", 100);
  create_jobs("other", 3);
  const Reply slow =
      rest().post("/v1/bulk", {{"action", "cancel"}, {"filter", {{"biz_type", "noop"}}}, {"rate_per_s", 1}});
  ASSERT_EQ(slow.status, 202) << slow.text;
  const Reply waiting = rest().post("/v1/bulk", {{"action", "cancel"}, {"filter", {{"biz_type", "other"}}}});
  ASSERT_EQ(waiting.status, 202) << waiting.text;
  const Json ended = rest().post("/v1/bulk/" + waiting.body["bulk_id"].get<std::string>() + "/stop").body;
  EXPECT_EQ(ended["state"], "stopped") << ended;
  EXPECT_EQ(ended["matched"], 3) << ended;
  EXPECT_EQ(ended["changed"], 0) << ended;
  EXPECT_EQ(ended["missed"], 3) << ended;
  EXPECT_EQ(database.number("SELECT count(*) FROM tocsin.job WHERE biz_type = 'other' AND status = 'pending'"), 3);
  const std::string id = slow.body["bulk_id"];
  EXPECT_EQ(rest().post("/v1/bulk/" + id + "/stop").status, 200);
  EXPECT_EQ(wait_for(id)["state"], "stopped");
}

TEST_F(Bulks, AnotherNodeFinishesTheOperationOfAKilledNode) {
  put_noop();
  create_jobs("noop", 600);
  NodeProcess other(database.url());
  const Reply started =
      other.rest().post("/v1/bulk", {{"action", "cancel"}, {"filter", {{"biz_type", "noop"}}}, {"rate_per_s", 100}});
  ASSERT_EQ(started.status, 202) << started.text;
  const std::string id = started.body["bulk_id"];
  ASSERT_TRUE(eventually([&] { return rest().get("/v1/bulk/" + id).body["changed"] > 0; }));
  other.kill();
  EXPECT_LT(count("cancelled"), 600) << "it was killed in the middle";
  const Json ended = wait_for(id);
  EXPECT_EQ(ended["state"], "done");
  EXPECT_EQ(ended["changed"], 600);
  EXPECT_EQ(count("cancelled"), 600);
}

class AuditedNode : public ::testing::Test {
 protected:
  static std::string tokens() {
    const std::string path = required_env("TOCSIN_TEST_DIR") + "/audited.toml";
    std::ofstream(path) << "[[token]]\nname = \"olga\"\nrole = \"admin\"\ntoken = \"olgas-token-0123456789\"\n"
                           "[[token]]\nname = \"shop\"\nrole = \"producer\"\ntoken = \"shops-token-0123456789\"\n";
    return path;
  }
  TestDatabase database{8};
};

TEST_F(AuditedNode, RecordsTheCallerOfEachChange) {
  {
    NodeProcess node(database.url(), {"--token-file", tokens()}, "olgas-token-0123456789");
    Rest olga(node.port(), "olgas-token-0123456789"), shop(node.port(), "shops-token-0123456789");
    ASSERT_LT(olga.put("/v1/types/noop", {{"handler", {{"kind", "noop"}}}}).status, 300);
    for (int i = 0; i < 3; ++i)
      ASSERT_EQ(shop.post("/v1/jobs", {{"biz_type", "noop"}, {"biz_id", "o-1"}, {"delay_ms", 3'600'000}}).status, 201);
    const Reply bulk =
        shop.post("/v1/bulk", {{"action", "cancel"}, {"filter", {{"biz_id", "o-1"}}}, {"reason", "paid"}});
    ASSERT_EQ(bulk.status, 202);
    ASSERT_TRUE(eventually(
        [&] { return shop.get("/v1/bulk/" + bulk.body["bulk_id"].get<std::string>()).body["state"] == "done"; }));
    ASSERT_EQ(olga.post("/v1/types/noop/pause", {{"reason", "the shop moves"}}).status, 200);
    EXPECT_EQ(shop.get("/v1/me").body, Json({{"name", "shop"}, {"role", "producer"}}));
    EXPECT_EQ(node.stop(), 0);
  }  // the node writes what it holds when it ends
  const auto rows = database.query(
      "SELECT actor, role, action, target, filter ->> 'action', changed, matched, reason, address FROM tocsin.audit "
      "ORDER BY action");
  ASSERT_EQ(rows.size(), 4U);
  EXPECT_STREQ(rows[0]["actor"].c_str(), "shop");
  EXPECT_STREQ(rows[0]["action"].c_str(), "createJob");
  EXPECT_EQ(rows[0]["changed"].as<int>(), 3);
  EXPECT_STREQ(rows[1]["action"].c_str(), "pauseType");
  EXPECT_STREQ(rows[1]["actor"].c_str(), "olga");
  EXPECT_STREQ(rows[1]["role"].c_str(), "admin");
  EXPECT_STREQ(rows[1]["target"].c_str(), "noop");
  EXPECT_STREQ(rows[1]["address"].c_str(), "127.0.0.1");
  EXPECT_STREQ(rows[1]["reason"].c_str(), "the shop moves");
  EXPECT_STREQ(rows[2]["action"].c_str(), "putType");
  EXPECT_STREQ(rows[3]["action"].c_str(), "startBulk");
  EXPECT_STREQ(rows[3][4].c_str(), "cancel") << "what the bulk operation does";
  EXPECT_EQ(rows[3]["matched"].as<int>(), 3);
  EXPECT_EQ(rows[3]["changed"].as<int>(), 3);
  EXPECT_STREQ(rows[3]["reason"].c_str(), "paid");
}

}  // namespace
}  // namespace tocsin

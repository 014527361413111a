// Limits, pauses and catching up, on a whole node or two.
#include "integration/live_node.h"

namespace tocsin {
namespace {

class Flow : public LiveNode {
 protected:
  // Pending jobs of a type straight in the tables, due that long ago.
  void insert(const std::string& type, int n, const std::string& age) {
    database.query(
        "WITH i AS (INSERT INTO tocsin.job_live (job_id, action_time, fire_at, gmt_create, gmt_modified, type_id, "
        "shard, max_attempts, biz_id) SELECT nextval('tocsin.job_seq') * 1024 + n % 8, now() - interval '" +
        age + "', now() - interval '" + age +
        "', now(), now(), t.type_id, n % 8, 16, t.name || n FROM generate_series(1, " + std::to_string(n) +
        ") n, tocsin.biz_type t WHERE t.name = '" + type +
        "' RETURNING type_id) INSERT INTO tocsin.job_count_delta SELECT type_id, 0, count(*) FROM i GROUP BY 1");
  }
  std::int64_t count_of(const std::string& type, const std::string& status) {
    return database.number("SELECT count(*) FROM tocsin.job WHERE biz_type = '" + type + "' AND status = '" + status +
                           "'");
  }
  void create_many(const std::string& type, int n, int delay_ms) {
    Json jobs = Json::array();
    for (int i = 0; i < n; ++i)
      jobs.push_back({{"biz_type", type}, {"biz_id", type + "-" + std::to_string(i)}, {"delay_ms", delay_ms}});
    ASSERT_EQ(rest().post("/v1/jobs/batch", {{"jobs", jobs}}).status, 201);
  }
  std::string explained(const std::string& id) {
    return rest().get("/v1/jobs/" + id + "/explain").body.value("reason", "");
  }
  bool metrics_say(const std::string& line) {
    return rest().get("/metrics").text.find("\n" + line + "\n") != std::string::npos;
  }
};

TEST_F(Flow, OlderPausedJobsHideNoOthersAndTakeNoMemory) {
  put_noop("paused");
  put_noop("other");
  ASSERT_EQ(rest().post("/v1/types/paused/pause").status, 200);
  insert("paused", 100'000, "1 hour");
  create_many("paused", 100, 1000);
  create_many("other", 100, 1500);
  EXPECT_TRUE(eventually([&] { return count_of("other", "done") == 100; }));
  EXPECT_EQ(count_of("paused", "pending"), 100'100);
  EXPECT_TRUE(metrics_say("tocsin_known_jobs 0"));
  EXPECT_TRUE(metrics_say("tocsin_due_jobs 0"));
  EXPECT_TRUE(metrics_say("tocsin_backlog_lanes 0"));
  EXPECT_TRUE(metrics_say("tocsin_type_paused{biz_type=\"paused\"} 1"));
  ASSERT_EQ(rest().post("/v1/types/paused/resume").status, 200);
  EXPECT_TRUE(eventually([&] { return count_of("paused", "done") == 100'100; }));
}

TEST_F(Flow, APauseEndsByItselfAtTheTimeGiven) {
  put_noop();
  const Reply bad = rest().post("/v1/types/noop/pause", {{"until", "2020-01-01T00:00:00Z"}});
  EXPECT_EQ(bad.status, 400);
  EXPECT_EQ(bad.body["field"], "until");
  const std::string until = database
                                .query(
                                    "SELECT to_char((now() + interval '2 seconds') AT TIME ZONE 'UTC', "
                                    "'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"')")[0][0]
                                .c_str();
  ASSERT_EQ(rest().post("/v1/types/noop/pause", {{"until", until}}).status, 200);
  const std::string id = create("noop", 0);
  EXPECT_NE(explained(id).find("is paused until"), std::string::npos) << explained(id);
  EXPECT_TRUE(becomes(id, "done"));
  EXPECT_EQ(database.number("SELECT count(*) FROM tocsin.job WHERE started_at < '" + until + "'"), 0);
}

TEST_F(Flow, MaxRunningHoldsOverTheWholeCluster) {
  start({"--node-name", "a", "--heartbeat-timeout", "2s"});
  NodeProcess other(database.url(), {"--node-name", "b", "--heartbeat-timeout", "2s"});
  ASSERT_TRUE(eventually([&] {
    const Json items = rest().get("/v1/nodes").body["items"];
    return items.size() == 2 && items[0]["shards"] == 4 && items[1]["shards"] == 4;
  }));
  receiver.hold();
  put_type("limited", {{"handler", receiver.handler()}, {"max_running", 3}});
  create_many("limited", 40, 0);
  ASSERT_TRUE(eventually([&] { return receiver.count() == 3; })) << receiver.count();
  const std::string waiting =
      database.query("SELECT job_id FROM tocsin.job WHERE status = 'pending' LIMIT 1")[0][0].c_str();
  EXPECT_TRUE(eventually([&] {
    return explained(waiting).find("3 of max_running 3 run in the cluster") != std::string::npos;
  })) << explained(waiting);
  EXPECT_EQ(database.number("SELECT sum(granted) FROM tocsin.permit WHERE limit_kind = 0"), 3);
  EXPECT_EQ(receiver.most_at_once(), 3U);
  receiver.release();
  EXPECT_TRUE(eventually([&] { return count_of("limited", "done") == 40; }));
  EXPECT_LE(receiver.most_at_once(), 3U);
  EXPECT_EQ(database.number("SELECT count(DISTINCT node) FROM tocsin.job WHERE status = 'done'"), 2)
      << "both had their part";
  EXPECT_EQ(other.stop(), 0);
  EXPECT_TRUE(eventually([&] { return metrics_say("tocsin_permits{biz_type=\"limited\",limit=\"max_running\"} 3"); }))
      << "who stays alone gets all";
}

TEST_F(Flow, ARateHoldsForInstantTypesToo) {
  put_type("paced", {{"handler", {{"kind", "noop"}}}, {"rate_per_s", 50}});
  put_noop("free");
  create_many("paced", 300, 0);
  create_many("free", 300, 0);
  EXPECT_TRUE(eventually([&] { return count_of("free", "done") == 300; }));
  EXPECT_TRUE(eventually([&] { return count_of("paced", "done") == 300; }));
  // In no second more than the rate and what had come together.
  EXPECT_LE(database.number("SELECT max(n) FROM (SELECT count(*) OVER (ORDER BY started_at RANGE BETWEEN interval "
                            "'1 second' PRECEDING AND CURRENT ROW) AS n FROM tocsin.job WHERE biz_type = 'paced') x"),
            103);
}

// The exhausted jobs stand behind more overdue rows than a page has, in lanes that a rate keeps in the backlog.
TEST_F(Flow, ExhaustedJobsOfABacklogAreDeadWithinTwoSweeps) {
  constexpr std::chrono::seconds kTwoSweeps(60);
  put_type("flooded", {{"handler", {{"kind", "noop"}}}, {"rate_per_s", 20}});
  insert("flooded", 20'000, "1 hour");
  database.query(
      "WITH e AS (UPDATE tocsin.job_live SET status = 1, attempts = max_attempts, claim_token = job_id, node = 'gone', "
      "started_at = now(), fire_at = now() - interval '1 minute' WHERE job_id IN (SELECT job_id FROM tocsin.job_live "
      "ORDER BY job_id DESC LIMIT 16) RETURNING type_id) INSERT INTO tocsin.job_count_delta SELECT type_id, s, n, NULL "
      "FROM (SELECT type_id, count(*) FROM e GROUP BY 1) c (type_id, k), LATERAL (VALUES (0, -k), (1, k)) v (s, n)");
  ASSERT_TRUE(eventually([&] { return metrics_say("tocsin_backlog_lanes 8"); }));
  EXPECT_TRUE(eventually([&] { return count_of("flooded", "dead") == 16; }, kTwoSweeps));
  EXPECT_TRUE(metrics_say("tocsin_backlog_lanes 8")) << "still";
}

TEST_F(Flow, JobsTooLateAreDeadAndRunAfterARetry) {
  put_type("fresh", {{"handler", {{"kind", "noop"}}}, {"catch_up", {{"drop_older_than_ms", 60'000}}}});
  insert("fresh", 2000, "1 hour");
  insert("fresh", 20, "10 seconds");
  start();  // as after an outage. A running node need not find them: nothing but this insert writes rows that were due
            // long before, and its sweeps begin where nobody writes any more (Scanner)
  EXPECT_TRUE(eventually([&] { return count_of("fresh", "done") == 20; }));
  EXPECT_TRUE(eventually([&] { return count_of("fresh", "dead") == 2000; }));
  EXPECT_EQ(database.number("SELECT count(*) FROM tocsin.job WHERE status = 'dead' AND started_at IS NULL AND "
                            "errors -> 0 ->> 'message' = 'too late'"),
            2000);
  const Reply reply = rest().post("/v1/jobs/retry", {{"biz_type", "fresh"}, {"limit", 10'000}});
  EXPECT_EQ(reply.body["retried"], 2000) << reply.text;
  EXPECT_TRUE(eventually([&] { return count_of("fresh", "done") == 2020; }));
}

TEST_F(Flow, LateJobsCatchUpAtTheirPaceWhileFreshOnesPassThem) {
  put_type("slowly", {{"handler", {{"kind", "noop"}}}, {"catch_up", {{"rate_per_s", 40}}}});
  insert("slowly", 400, "1 hour");
  start();
  create_many("slowly", 50, 500);
  EXPECT_TRUE(eventually([&] {
    return database.number(
               "SELECT count(*) FROM tocsin.job WHERE status = 'done' AND action_time > now() - interval "
               "'10 minutes'") == 50;
  }));
  EXPECT_GT(count_of("slowly", "pending"), 0) << "the late ones still wait";
  EXPECT_TRUE(eventually([&] { return count_of("slowly", "done") == 450; }));
  // A second's worth at once, the other 360 at their pace: 9 s. A start that was held up makes the span no shorter than
  // by itself.
  EXPECT_GE(
      database.number("SELECT extract(epoch FROM max(started_at) - min(started_at))::bigint FROM tocsin.job WHERE "
                      "action_time < now() - interval '10 minutes'"),
      7);
}

}  // namespace
}  // namespace tocsin

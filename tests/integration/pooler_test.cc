// Nodes that reach their database through a pooler which shares sessions, or lose the session that listens again and
// again: everything works, only wake-ups are lost.
#include <gtest/gtest.h>

#include <set>

#include "integration/quiet_housekeeping.h"
#include "support/manual_clock.h"
#include "support/node_process.h"
#include "support/pgbouncer.h"
#include "support/test_database.h"

namespace tocsin {
namespace {

void put_type(Rest& rest, const std::string& kind) {
  const Reply reply = rest.put("/v1/types/" + kind, {{"handler", {{"kind", kind}}}});
  ASSERT_LT(reply.status, 300) << reply.text;
}

std::string create(Rest& rest, const std::string& key, int delay_ms, const std::string& type = "noop") {
  const Reply reply =
      rest.post("/v1/jobs", {{"biz_type", type}, {"biz_id", key}, {"delay_ms", delay_ms}, {"idempotency_key", "once"}});
  EXPECT_TRUE(reply.status == 201 || reply.status == 200) << reply.text;
  return reply.body.value("job_id", "0");
}

std::multiset<std::string> ids(TestDatabase& database, const std::string& status) {
  std::multiset<std::string> ids;
  for (const auto& row : database.query("SELECT job_id FROM tocsin.job WHERE status = '" + status + "'"))
    ids.insert(row[0].c_str());
  return ids;
}

void print_lateness(TestDatabase& database, const char* what) {
  const auto row = database.query(
      "SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY lateness_ms), max(lateness_ms), count(*) FROM tocsin.job "
      "WHERE "
      "status = 'done'")[0];
  std::printf("%s: %s jobs, lateness p50 %s ms, most %s ms\n", what, row[2].c_str(), row[0].c_str(), row[1].c_str());
}

// Everything that callers, consumers and nodes do with the database.
void expect_all_works(TestDatabase& database, const Pgbouncer& pooler) {
  NodeProcess a(pooler.url(), {"--node-name", "a", "--heartbeat-timeout", "2s"});
  NodeProcess b(pooler.url(), {"--node-name", "b", "--heartbeat-timeout", "2s"});
  put_type(a.rest(), "noop");
  put_type(a.rest(), "pull");
  std::multiset<std::string> wanted, cancelled;
  for (int i = 0; i < 60; ++i) {
    Rest& rest = (i % 2 == 0 ? a : b).rest();
    wanted.insert(create(rest, "soon-" + std::to_string(i), i * 20));
    cancelled.insert(create(rest, "far-" + std::to_string(i), 3'600'000));
  }
  EXPECT_EQ(create(b.rest(), "far-0", 3'600'000), create(a.rest(), "far-0", 3'600'000)) << "the same key";
  Json batch = Json::array();
  for (int i = 0; i < 100; ++i)
    batch.push_back({{"biz_type", "noop"}, {"biz_id", "batch-" + std::to_string(i)}, {"delay_ms", 100}});
  const Reply created = a.rest().post("/v1/jobs/batch", {{"jobs", batch}});
  ASSERT_EQ(created.status, 201) << created.text;
  for (const Json& item : created.body["items"]) wanted.insert(item["job_id"].get<std::string>());
  const std::string moved = create(a.rest(), "moved", 3'600'000);
  EXPECT_EQ(b.rest().post("/v1/jobs/" + moved + "/reschedule", {{"delay_ms", 300}}).status, 200);
  wanted.insert(moved);
  wanted.insert(std::to_string(database.number("SELECT tocsin.create_job('noop', 'sql', clock_timestamp())")));
  for (const std::string& id : cancelled) {
    const Reply reply = b.rest().post("/v1/jobs/" + id + "/cancel");
    EXPECT_EQ(reply.status, 200) << reply.text;
  }
  const std::string leased = create(a.rest(), "leased", 1, "pull");
  Reply lease;
  EXPECT_TRUE(eventually([&] {
    lease = b.rest().post("/v1/types/pull/lease", {{"max", 1}, {"wait_ms", 500}});
    return lease.body["items"].size() == 1;
  }));
  const Json& item = lease.body["items"][0];
  const Reply ack = a.rest().post("/v1/leases/ack",
                                  {{"items", {{{"job_id", item["job_id"]}, {"lease_token", item["lease_token"]}}}}});
  EXPECT_EQ(ack.body["items"][0]["result"], "ok") << ack.text;
  wanted.insert(leased);

  EXPECT_TRUE(eventually([&] { return ids(database, "done").size() == wanted.size(); }));
  EXPECT_EQ(ids(database, "done"), wanted);
  EXPECT_EQ(ids(database, "cancelled"), cancelled);
  EXPECT_EQ(b.rest().get("/v1/stats").body["totals"]["done"], wanted.size());
  EXPECT_EQ(database.number("SELECT count(*) FROM tocsin.job WHERE started_at < action_time"), 0);
  const Reply ready = a.rest().get("/readyz");
  EXPECT_NE(ready.text.find("not listening"), std::string::npos) << ready.text;
  EXPECT_NE(ready.text.find("the role has no lock_timeout"), std::string::npos) << ready.text;
  print_lateness(database, "through a pooler");
  // What a node leaves, others take: the heartbeats went through as well.
  EXPECT_EQ(a.stop(), 0);
  wanted.insert(create(b.rest(), "after", 1));
  EXPECT_TRUE(eventually([&] { return ids(database, "done") == wanted; }));
}

TEST(Pooler, ANodeWorksThroughOneThatRefusesSettings) {
  TestDatabase database;
  const Pgbouncer pooler(database.url());
  expect_all_works(database, pooler);
}

TEST(Pooler, ANodeWorksThroughOneThatDropsSettings) {
  TestDatabase database;
  const Pgbouncer pooler(database.url(), "ignore_startup_parameters = options");
  expect_all_works(database, pooler);
}

TEST(Pooler, AnInstallationCanBeMadeThroughIt) {
  TestDatabase database(0);
  const Pgbouncer pooler(database.url());
  const Ran ran = run_tocsin({"migrate", "--database", pooler.url(), "--shards", "4"});
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_EQ(database.number("SELECT tocsin.shard_count()"), 4);
}

// Clients stay connected when the server behind the pooler is replaced.
TEST(Pooler, IdsAreRaisedAfterAPromotionBehindIt) {
  TestDatabase database;
  const Pgbouncer pooler(database.url());
  ManualClock clock;
  Housekeeping housekeeping({{pooler.url(), "housekeeping"}, {}, 1}, clock, quiet_callbacks());
  const Status started = housekeeping.start();
  ASSERT_TRUE(started) << started.error().message;
  const auto before = database.number("SELECT last_value FROM tocsin.job_seq");
  // As on a standby that was promoted: what it copied is of another timeline than it writes.
  database.query("UPDATE tocsin.setting SET value = '000000FF' WHERE name = 'timeline'");
  clock.advance(std::chrono::seconds(3));
  housekeeping.reload_types();  // begins a turn
  EXPECT_TRUE(eventually([&] { return database.number("SELECT last_value FROM tocsin.job_seq") > before + 999'999; }));
}

TEST(Pooler, AListenerThatIsEndedAgainAndAgainLosesNothing) {
  TestDatabase database;
  NodeProcess a(database.url(), {"--node-name", "a"}), b(database.url(), {"--node-name", "b"});
  put_type(a.rest(), "noop");
  std::multiset<std::string> wanted;
  std::int64_t ended = 0;
  for (int i = 0; i < 200 || (ended < 6 && i < 5000);
       ++i) {  // a listener that was ended waits before it connects again
    wanted.insert(create((i % 2 == 0 ? a : b).rest(), "key-" + std::to_string(i), i % 300));
    if (i % 10 == 0)
      ended += database.number(
          "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = current_database() AND pid <> "
          "pg_backend_pid() AND "
          "(query LIKE 'LISTEN%' OR query = 'SELECT 1' OR query LIKE '%k (shard, job_id)%')");
  }
  EXPECT_GT(ended, 5);
  EXPECT_TRUE(eventually([&] { return ids(database, "done") == wanted; }));
  EXPECT_TRUE(eventually([&] { return a.rest().get("/readyz").body["checks"].value("notifications", "") == "ok"; }));
  print_lateness(database, "with a listener that is ended again and again");
}

}  // namespace
}  // namespace tocsin

// Shards that move to another database while they are in use: nothing is lost, nothing is done twice.
#include <gtest/gtest.h>
#include <signal.h>

#include "integration/load.h"
#include "integration/moves.h"

namespace tocsin {
namespace {

// What the switch rests on: no row of a write-frozen shard changes, and other shards are not delayed.
TEST(Move, AFrozenShardDoesNotChange) {
  TestDatabase database(kShards);
  database.query(
      "INSERT INTO tocsin.biz_type (name, handler, ttr_ms, max_attempts, backoff, catch_up) VALUES ('noop', '{}', "
      "1000, 3, '{}', '{}')");
  const auto create = [&](int shard, int n) {
    return "SELECT tocsin.create_job('noop', '" + key_of(shard, n) + "', now() + interval '1 hour')";
  };
  const std::int64_t pending = database.number(create(2, 1)), running = database.number(create(2, 2));
  const auto rows = [&](const std::string& change) { return database.query(change).affected_rows(); };
  const auto of = [](std::int64_t id) { return " WHERE shard = 2 AND job_id = " + std::to_string(id); };
  const std::string claim = "UPDATE tocsin.job_live SET status = 1, claim_token = 7";
  EXPECT_EQ(rows(claim + of(running)), 1U);

  database.query("SELECT tocsin.freeze_shard(2::smallint)");
  const std::int64_t outside = database.number(create(2, 3));
  EXPECT_EQ(database.number("SELECT count(*) FROM tocsin.outbox WHERE job_id = " + std::to_string(outside)), 1);
  EXPECT_EQ(rows(claim + of(pending)), 0U) << "claimed";
  EXPECT_EQ(rows("DELETE FROM tocsin.job_live" + of(running)), 0U) << "finished";
  EXPECT_THROW(database.query("UPDATE tocsin.job_live SET fire_at = now()" + of(running)), pqxx::sql_error)
      << "extended";
  EXPECT_THROW(database.query("UPDATE tocsin.job_live SET fire_at = now()" + of(pending)), pqxx::sql_error)
      << "run now";
  EXPECT_THROW(database.query("SELECT tocsin.cancel_job(" + std::to_string(pending) + ")"), pqxx::sql_error);
  const std::int64_t neighbour = database.number(create(3, 4));
  EXPECT_EQ(database.query("SELECT tocsin.cancel_job(" + std::to_string(neighbour) + ")")[0][0].as<std::string>(),
            "cancelled");

  database.query("SELECT tocsin.thaw_shard(2::smallint)");
  database.query("SELECT tocsin.open_shard(2::smallint)");
  EXPECT_EQ(rows(claim + of(pending)), 1U);
  EXPECT_EQ(rows("DELETE FROM tocsin.job_live" + of(running)), 1U);
  EXPECT_GT(database.number(create(2, 3)), 0);
}

TEST(Move, UnderLoadNothingIsLostOrDoneTwice) {
  LogicalCluster a, b;
  const Two two{a.url(), b.url()};
  two.install();
  const auto node = two.node();
  Rest& rest = node->rest();
  put(rest, "noop");
  put(rest, "pull");
  std::set<std::string> wanted, cancelled;
  for (int i = 0; i < 20; ++i) cancelled.insert(create(rest, "noop", key_of(0, i), 3'600'000));
  for (int i = 0; i < 20; ++i) wanted.insert(create(rest, "noop", key_of(0, i), 1));
  create(rest, "pull", key_of(0, 99), 1);
  Reply lease;
  EXPECT_TRUE(eventually([&] {
    lease = rest.post("/v1/types/pull/lease", {{"max", 1}, {"wait_ms", 1000}, {"ttr_ms", 600'000}});
    return lease.body["items"].size() == 1;
  }));

  Load load(node->port(), "noop", 4, 200);
  EXPECT_TRUE(eventually([&] { return load.acknowledged() > 200; }));
  Process mover([&] {
    auto arguments = two.command({"shard", "move", "0", "--to", "b"});
    arguments.insert(arguments.begin(), required_env("TOCSIN_BINARY"));
    return arguments;
  }());
  for (const std::string& id : cancelled) {
    const Reply reply = rest.post("/v1/jobs/" + id + "/cancel");
    EXPECT_EQ(reply.status, 200) << reply.text;
  }
  EXPECT_EQ(mover.wait(), 0) << mover.out() << mover.err();
  std::printf("%s", mover.out().c_str());
  load.stop();
  EXPECT_EQ(load.refused(), 0U);
  wanted.merge(load.ids());
  EXPECT_EQ(database_of(rest, 0), "b");

  // The claim went along: its end is written where the job is now.
  const Json& leased = lease.body["items"][0];
  const Reply ack = rest.post("/v1/leases/ack",
                              {{"items", {{{"job_id", leased["job_id"]}, {"lease_token", leased["lease_token"]}}}}});
  EXPECT_EQ(ack.body["items"][0]["result"], "ok") << ack.text;
  wanted.insert(leased["job_id"].get<std::string>());
  EXPECT_TRUE(eventually([&] { return two.both("SELECT job_id FROM tocsin.job_live").empty(); }));

  const auto done = two.both("SELECT job_id FROM tocsin.job WHERE status = 'done' AND attempts = 1");
  EXPECT_EQ(done.size(), wanted.size()) << "as many as were wanted";
  EXPECT_EQ(std::set<std::string>(done.begin(), done.end()), wanted) << "each once";
  const auto off = two.both("SELECT job_id FROM tocsin.job WHERE status = 'cancelled'");
  EXPECT_EQ(std::set<std::string>(off.begin(), off.end()), cancelled);
  EXPECT_EQ(off.size(), cancelled.size());
  EXPECT_EQ(two.rows_of(a.url(), 0), 0U);
  const Json totals = rest.get("/v1/stats").body["totals"];
  EXPECT_EQ(totals["done"], wanted.size());
  EXPECT_EQ(totals["cancelled"], cancelled.size());
  EXPECT_EQ(totals["pending"], 0);
  EXPECT_EQ(totals["running"], 0);
  for (const std::string& id : cancelled) EXPECT_EQ(rest.get("/v1/jobs/" + id).body["status"], "cancelled");
  EXPECT_EQ(two.leftovers(), 0U);
}

TEST(Move, RefusesALogThatCannotBeDecodedAndDatabasesThatItDoesNotKnow) {
  PrivateCluster a, b;
  const Two two{a.url(), b.url()};
  two.install();
  const Ran plain = two.move(0, "b");
  EXPECT_EQ(plain.exit_code, 1);
  EXPECT_NE(plain.err.find("wal_level"), std::string::npos) << plain.err;
  EXPECT_EQ(two.leftovers(), 0U) << "what is refused is not on its way";
  const Ran unknown = two.move(0, "c");
  EXPECT_EQ(unknown.exit_code, 1);
  EXPECT_NE(unknown.err.find("'c'"), std::string::npos) << unknown.err;
  const Ran here = two.move(0, "a");
  EXPECT_EQ(here.exit_code, 0) << here.err;
}

TEST(Move, RebalanceSpreadsShardsOverADatabaseThatCameLater) {
  LogicalCluster server;
  execute(server.url(), "CREATE DATABASE second");
  const Two two{server.url(), url_of(server.url(), "second")};
  ASSERT_EQ(run_tocsin({"migrate", "--database", "a=" + two.a, "--shards", "3"}).exit_code, 0);
  ASSERT_EQ(run_tocsin(two.command({"migrate"})).exit_code, 0);
  const Ran ran = run_tocsin(two.command({"shard", "rebalance"}));
  EXPECT_EQ(ran.exit_code, 0) << ran.out << ran.err;
  EXPECT_EQ(two.both("SELECT cardinality(shards)::text FROM tocsin.place"), (std::multiset<std::string>{"1", "2"}));
  EXPECT_EQ(two.leftovers(), 0U);
}

}  // namespace
}  // namespace tocsin

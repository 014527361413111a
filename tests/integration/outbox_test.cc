// Jobs that SQL callers create in a database where their shards do not live: each becomes one job over there.
#include "integration/outbox.h"

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <set>

#include "core/lease_token.h"

namespace tocsin {
namespace {

TEST(Outbox, JobsAreCreatedWithTheirTransactionInAnyDatabase) {
  TestDatabase a(0), b(0);
  const OutboxDatabases both({a.url(), b.url()});
  const auto node = both.node();
  both.put_noop(*node);
  a.query("CREATE TABLE public.witness (job_id bigint)");
  Ids at_a, at_b;
  pqxx::connection business(a.url());
  for (const bool is_committed : {true, false, true}) {
    pqxx::work tx(business);
    for (int shard = 0; shard < kOutboxShards; ++shard) {
      const auto row =
          tx.exec1("INSERT INTO public.witness " + create_statement(outbox_key(shard)) + " RETURNING job_id");
      if (is_committed) (shard < 4 ? at_a : at_b).insert(row[0].as<std::int64_t>());
    }
    if (is_committed) tx.commit();
  }
  EXPECT_TRUE(eventually([&] { return both.ids(1, "done") == at_b && both.ids(0, "done") == at_a; }));
  EXPECT_TRUE(eventually([&] { return both.number(0, "SELECT count(*) FROM tocsin.outbox") == 0; }));
  EXPECT_EQ(a.number("SELECT count(*) FROM public.witness"), static_cast<int>(at_a.size() + at_b.size()));
  EXPECT_EQ(node->rest().get("/v1/jobs/" + std::to_string(*at_b.begin())).body["status"], "done");
  EXPECT_EQ(node->rest().get("/v1/stats").body["totals"]["done"], at_a.size() + at_b.size());
  EXPECT_NE(node->rest().get("/metrics").text.find("tocsin_outbox_relayed_total 8"), std::string::npos);
}

TEST(Outbox, InvalidCreatesAreRefusedBeforeTheOutbox) {
  TestDatabase a(0), b(0);
  const OutboxDatabases both({a.url(), b.url()});
  both.put_noop(*both.node());
  pqxx::connection business(a.url());
  const std::string here = outbox_key(0), there = outbox_key(5);
  for (const std::string& key : {here, there}) {
    const auto state = [&](const std::string& arguments) {
      return sqlstate_of("SELECT tocsin.create_job(" + arguments + ")", business);
    };
    EXPECT_EQ(state("'nobody', '" + key + "', now()"), "23503");
    EXPECT_EQ(state("'noop', '" + key + "', '1999-01-01'"), "22008");
    EXPECT_EQ(state("'noop', '" + key + "', now(), to_jsonb(repeat('x', 70000))"), "54000");
    EXPECT_EQ(state("'noop', '" + key + "', now(), NULL, ''"), "23514");
    EXPECT_EQ(state("'noop', '" + key + "', '2040-01-01', '{\"n\": 1}', 'k'"), "");
    EXPECT_EQ(state("'noop', '" + key + "', '2040-01-01', '{\"n\": 2}', 'k'"), "23505") << "another body";
    const std::string again = "SELECT tocsin.create_job('noop', '" + key + "', '2040-01-01', '{\"n\": 1}', 'k')";
    EXPECT_EQ(a.number(again), a.number(again)) << "the same job";
  }
  EXPECT_EQ(a.number("SELECT count(*) FROM tocsin.outbox_entry WHERE state = 'waiting'"), 1);
  EXPECT_EQ(a.number("SELECT count(*) FROM tocsin.job"), 1);

  // As any business role: nothing but the functions.
  a.query(
      "DO $$ BEGIN CREATE ROLE tocsin_test_shop NOLOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$;"
      "GRANT USAGE ON SCHEMA tocsin TO tocsin_test_shop; GRANT EXECUTE ON FUNCTION tocsin.create_job, "
      "tocsin.cancel_job "
      "TO tocsin_test_shop");
  pqxx::work tx(business);
  tx.exec("SET LOCAL ROLE tocsin_test_shop");
  const auto id = tx.exec1(create_statement(outbox_key(6)))[0].as<std::int64_t>();
  EXPECT_EQ(tx.exec1("SELECT tocsin.cancel_job(" + std::to_string(id) + ")")[0].as<std::string>(), "cancelled");
  EXPECT_THROW(tx.exec("SELECT * FROM tocsin.outbox"), pqxx::sql_error);
}

TEST(Outbox, AJobCancelledBeforeItsRelayNeverRuns) {
  TestDatabase a(0), b(0);
  const OutboxDatabases both({a.url(), b.url()});
  both.put_noop(*both.node());
  const auto cancel = [&](std::int64_t id) {
    return both.text(0, "SELECT tocsin.cancel_job(" + std::to_string(id) + ")");
  };
  std::int64_t in_one = 0;
  {
    pqxx::connection business(a.url());
    pqxx::work tx(business);
    in_one = tx.exec1(create_statement(outbox_key(4)))[0].as<std::int64_t>();
    EXPECT_EQ(tx.exec1("SELECT tocsin.cancel_job(" + std::to_string(in_one) + ")")[0].as<std::string>(), "cancelled");
    tx.commit();
  }
  const auto later = both.number(0, create_statement(outbox_key(5)));
  const auto runs = both.number(0, create_statement(outbox_key(6), "'2040-01-01'"));
  EXPECT_EQ(cancel(later), "cancelled");
  EXPECT_EQ(cancel(later), "finished");
  const auto node = both.node();
  EXPECT_TRUE(eventually([&] { return both.waiting(0) == 0; }));
  EXPECT_EQ(both.ids(1, "cancelled"), (Ids{in_one, later}));
  EXPECT_EQ(both.ids(1, "pending"), (Ids{runs}));
  EXPECT_TRUE(both.ids(1, "done").empty());
  EXPECT_EQ(node->rest().get("/v1/stats").body["totals"]["cancelled"], 2);
  pqxx::connection business(a.url());
  EXPECT_EQ(sqlstate_of("SELECT tocsin.cancel_job(" + std::to_string(runs) + ")", business), "TC001")
      << "it is there now";
  EXPECT_EQ(both.text(1, "SELECT tocsin.cancel_job(" + std::to_string(runs) + ")"), "cancelled");
}

// As on a damaged page of the outbox.
TEST(Outbox, AnEntryThatCannotBeDeletedDelaysNoOther) {
  TestDatabase a(0), b(0);
  const OutboxDatabases both({a.url(), b.url()});
  const auto node = both.node();
  both.put_noop(*node);
  const std::string stuck = outbox_key(7), other = outbox_key(6);
  a.query("CREATE FUNCTION public.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'damaged'; END $$");
  a.query("CREATE TRIGGER refuse BEFORE DELETE ON tocsin.outbox FOR EACH ROW WHEN (old.biz_id = '" + stuck +
          "') EXECUTE FUNCTION public.refuse()");
  pqxx::connection business(a.url());
  pqxx::work tx(business);
  for (const std::string& key : {stuck, other}) tx.exec(create_statement(key, "'2040-01-01'"));
  tx.commit();
  EXPECT_TRUE(eventually([&] { return both.waiting(0) == 1; }));
  both.number(0, create_statement(other, "'2041-01-01'"));
  EXPECT_TRUE(eventually([&] { return both.waiting(0) == 1 && both.ids(1, "pending").size() == 3; }));
  a.query("DROP TRIGGER refuse ON tocsin.outbox");
  EXPECT_TRUE(eventually([&] { return both.waiting(0) == 0; }));
  EXPECT_EQ(both.ids(1, "pending").size(), 3U);
}

TEST(Outbox, ARefusedEntryStaysAndIsCounted) {
  TestDatabase a(0), b(0);
  const OutboxDatabases both({a.url(), b.url()});
  const auto node = both.node();
  both.put_noop(*node);
  const std::string key = outbox_key(7);
  const auto keyed = [&](int body) {
    return create_statement(key, "'2040-01-01', '{\"n\": " + std::to_string(body) + "}', 'once'");
  };
  const auto first = both.number(1, keyed(1));
  const auto same = both.number(0, keyed(1));
  EXPECT_TRUE(eventually([&] { return both.waiting(0) == 0; }));
  const auto other = both.number(0, keyed(2));
  EXPECT_TRUE(eventually([&] { return both.waiting(0) == 0; }));
  EXPECT_EQ(both.ids(1, "pending"), (Ids{first}));
  const auto entry = [&](std::int64_t id) {
    const auto row =
        both.query(0, "SELECT state, existing_job_id, coalesce(error, '') FROM tocsin.outbox_entry WHERE job_id = " +
                          std::to_string(id))[0];
    return std::string(row[0].c_str()) + " " + row[1].c_str() + " " + row[2].c_str();
  };
  EXPECT_EQ(entry(same), "existing " + std::to_string(first) + " ");
  EXPECT_EQ(entry(other).substr(0, entry(other).find(" idem")), "refused " + std::to_string(first));
  EXPECT_NE(entry(other).find("another body"), std::string::npos);
  EXPECT_TRUE(eventually([&] {
    return node->rest().get("/metrics").text.find("tocsin_outbox_refused{database=\"a\"} 1") != std::string::npos;
  }));
  EXPECT_NE(node->log().find("was refused"), std::string::npos);
  pqxx::connection business(a.url());
  for (const auto id : {same, other})
    EXPECT_EQ(sqlstate_of("SELECT tocsin.cancel_job(" + std::to_string(id) + ")", business), "TC001");
  EXPECT_EQ(both.ids(1, "pending"), (Ids{first}));
  // The timer of the key is what the caller means, with whichever deadline.
  for (const auto id : {same, other})
    EXPECT_EQ(node->rest().get("/v1/jobs/" + std::to_string(id)).body["job_id"], std::to_string(first));
  EXPECT_EQ(node->rest().post("/v1/jobs/" + std::to_string(other) + "/cancel").status, 200);
  EXPECT_EQ(both.ids(1, "cancelled"), (Ids{first}));
  EXPECT_EQ(node->rest().get("/v1/jobs/" + std::to_string(other)).body["status"], "cancelled");
}

TEST(Outbox, EntriesThatCannotBeTakenDelayNoOthers) {
  TestDatabase a(0), b(0);
  const OutboxDatabases both({a.url(), b.url()});
  const auto node = both.node();
  both.put_noop(*node);
  // Strangers lie between the entries whose keys are held. With long waits for these keys, the last stranger would come
  // after a minute, when the batch is too old.
  constexpr int kStrangers = 15, kHeld = 10 * kStrangers;
  std::string held, repeated;
  for (int i = 0; i < kHeld; ++i) {
    const std::string key = outbox_key(7);
    held += create_statement(key, "'2040-01-01', NULL, 'k'") + ";";
    repeated += create_statement(key, "'2040-01-01', NULL, 'k'") + ";";
    if (i % 10 == 0) repeated += create_statement(outbox_key(7), "'2040-01-01', NULL, 'k'") + ";";
  }
  b.query(
      "CREATE FUNCTION public.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF NEW.max_attempts = 99 THEN "
      "RAISE EXCEPTION 'not this one'; END IF; RETURN NEW; END $$");
  b.query("CREATE TRIGGER refuse BEFORE INSERT ON tocsin.job_live FOR EACH ROW EXECUTE FUNCTION public.refuse()");
  pqxx::connection holder(b.url());
  pqxx::work tx(holder);
  tx.exec(held);
  a.query(repeated);  // as one transaction, so that one batch has them all
  a.query("BEGIN; " + create_statement(outbox_key(7), "'2040-01-01'") +
          "; UPDATE tocsin.outbox SET max_attempts = 99 " + "WHERE idempotency_key IS NULL; COMMIT");
  EXPECT_TRUE(eventually([&] { return both.ids(1, "pending").size() == kStrangers; }, std::chrono::seconds(40)));
  tx.abort();
  EXPECT_TRUE(eventually([&] { return both.ids(1, "pending").size() == kHeld + kStrangers; }));
  b.query("DROP FUNCTION public.refuse() CASCADE");
  EXPECT_TRUE(eventually([&] { return both.waiting(0) == 0; }));
  EXPECT_EQ(both.ids(1, "pending").size(), kHeld + kStrangers + 1U);
}

// What a SQL caller has committed is seen by every request that begins later, wherever the job's shard lives.
TEST(Outbox, EveryVerbOfRestFindsAJobThatWasCommittedBeforeIt) {
  TestDatabase a(0), b(0);
  const OutboxDatabases both({a.url(), b.url()});
  const auto node = both.node();
  both.put_noop(*node);
  Rest& rest = node->rest();
  pqxx::connection business(a.url());
  int shard = 4;
  std::string key;
  // Due long after the lookahead, so that nothing but the request hurries the relay.
  const auto create = [&] {
    key = outbox_key(shard);
    shard = shard == kOutboxShards - 1 ? 4 : shard + 1;
    pqxx::nontransaction tx(business);
    return std::to_string(tx.exec1(create_statement(key, "'2040-01-01'"))[0].as<std::int64_t>());
  };
  for (int round = 0; round < 5; ++round) {
    std::string id = create();
    EXPECT_EQ(rest.post("/v1/jobs/cancel", {{"biz_id", key}}).body["cancelled"], Json::array({id}));
    id = create();
    EXPECT_EQ(rest.post("/v1/jobs/cancel", {{"job_ids", {id}}}).body["cancelled"], Json::array({id}));
    id = create();
    EXPECT_EQ(rest.get("/v1/jobs?biz_id=" + key).body["items"].size(), 1U);
    id = create();
    EXPECT_EQ(rest.get("/v1/jobs?status=pending&biz_id=" + key).body["items"].size(), 1U);
    id = create();
    EXPECT_EQ(rest.get("/v1/jobs/" + id).status, 200);
    id = create();
    EXPECT_EQ(rest.get("/v1/jobs/" + id + "/explain").status, 200);
    id = create();
    EXPECT_EQ(rest.post("/v1/jobs/" + id + "/reschedule", {{"delay_ms", 600'000}}).status, 200);
    id = create();
    EXPECT_EQ(rest.post("/v1/jobs/" + id + "/run", Json::object()).status, 200);
    id = create();
    EXPECT_EQ(rest.post("/v1/jobs/" + id + "/cancel", Json::object()).status, 200);
    id = create();
    EXPECT_EQ(rest.post("/v1/jobs/" + id + "/retry", Json::object()).status, 409) << "it is pending";
  }
  EXPECT_EQ(rest.get("/v1/jobs/" + std::to_string(1024 * 4 + 5)).status, 404);
  EXPECT_EQ(both.ids(1, "cancelled").size(), 15U);
}

TEST(Outbox, WhileAnEntryCannotBeRelayedItsJobIsNotUnknown) {
  TestDatabase a(0), b(0);
  const OutboxDatabases both({a.url(), b.url()});
  const auto node = both.node();
  both.put_noop(*node);
  Rest& rest = node->rest();
  pqxx::connection holder(b.url());
  pqxx::work held(holder);
  held.exec("LOCK TABLE tocsin.relayed IN SHARE MODE");  // which take_over() writes
  const std::string key = outbox_key(5), other = outbox_key(6);
  const auto id = both.number(0, create_statement(key, "'2040-01-01'"));
  const Reply cancelled = rest.post("/v1/jobs/cancel", {{"biz_id", key}});
  EXPECT_EQ(cancelled.status, 503) << cancelled.text;
  EXPECT_NE(cancelled.text.find("on its way from the database a"), std::string::npos) << cancelled.text;
  EXPECT_EQ(rest.get("/v1/jobs/" + std::to_string(id)).status, 503);
  EXPECT_EQ(rest.get("/v1/jobs?biz_id=" + other).status, 200) << "it delays no other key";
  held.commit();
  EXPECT_EQ(rest.post("/v1/jobs/cancel", {{"biz_id", key}}).body["cancelled"], Json::array({std::to_string(id)}));
}

// A business that repeats its create in another database keeps the id that it was given there.
TEST(Outbox, TheIdOfARepeatedCreateNamesTheJobToEveryVerb) {
  TestDatabase a(0), b(0), c(0);
  const OutboxDatabases all({a.url(), b.url(), c.url()});
  const auto node = all.node();
  all.put_noop(*node);
  const std::string repeated = create_statement(outbox_key(7), "'2040-01-01', '{\"n\": 1}', 'once'");
  std::vector<std::int64_t> ids;
  for (const std::size_t database : {2U, 0U, 1U}) {
    ids.push_back(all.number(database, repeated));
    ASSERT_TRUE(eventually([&] { return all.waiting(database) == 0; }));
  }
  const std::string first = std::to_string(ids[0]);
  const auto path = [](std::int64_t id) { return "/v1/jobs/" + std::to_string(id); };
  for (const std::int64_t id : ids) {
    EXPECT_EQ(node->rest().get(path(id)).body["job_id"], first);
    EXPECT_EQ(node->rest().get(path(id) + "/explain").status, 200);
    EXPECT_EQ(node->rest().post(path(id) + "/reschedule", {{"delay_ms", 3'600'000}}).status, 200);
  }
  const auto cancelled = node->rest().post(path(ids[1]) + "/cancel", Json::object());
  EXPECT_EQ(cancelled.body["job"]["job_id"], first) << cancelled.text;
  for (const std::int64_t id : ids) EXPECT_EQ(node->rest().post(path(id) + "/cancel", Json::object()).status, 409);
  const auto many = node->rest().post("/v1/jobs/cancel", {{"job_ids", {std::to_string(ids[2])}}});
  EXPECT_EQ(many.body["finished"], Json::array({std::to_string(ids[2])})) << many.text << ", the id that was asked for";
  EXPECT_TRUE(many.body["not_found"].empty()) << many.text;
  EXPECT_EQ(all.text(2, "SELECT tocsin.cancel_job(" + std::to_string(ids[1]) + ")"), "finished");
  EXPECT_EQ(all.number(2, "SELECT count(*) FROM tocsin.job"), 1);
}

// A shard that moves is opened in its new database before every node knows that. A node with the old map looks for a
// job where it cannot be any more.
class OldMap : public testing::Test {
 protected:
  // What every verb answers about the job and its key, a status each. Of a cancel of many, 409: the job is `locked`.
  std::vector<int> ask_all() {
    std::vector<std::future<int>> statuses;
    const auto ask = [&](auto call) {
      statuses.push_back(std::async(std::launch::async, [this, call] {
        const Reply reply = call(Rest(node->port()));
        EXPECT_EQ(reply.status == 503, reply.text.find("moving") != std::string::npos) << reply.text;
        return reply.body.contains("locked") && !reply.body["locked"].empty() ? 409 : reply.status;
      }));
    };
    const std::string path = "/v1/jobs/" + id;
    for (const std::string& read :
         {path, path + "/explain", "/v1/jobs?biz_id=" + key, "/v1/jobs?status=dead&biz_id=" + key})
      ask([read](Rest rest) { return rest.get(read); });
    for (const char* const verb : {"/cancel", "/run", "/retry"})
      ask([change = path + verb](Rest rest) { return rest.post(change); });
    ask([path](Rest rest) { return rest.post(path + "/reschedule", {{"delay_ms", 3'600'000}}); });
    for (const Json& body : {Json{{"biz_id", key}}, Json{{"job_ids", {id}}}})
      ask([body](Rest rest) { return rest.post("/v1/jobs/cancel", body); });
    std::vector<int> all;
    for (auto& status : statuses) all.push_back(status.get());
    return all;
  }

  // The node has asked a since then which shards live there.
  bool has_looked_since(const std::string& time) {
    return both.number(0,
                       "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'tocsin outbox lookup' AND "
                       "datname = current_database() AND query LIKE '%tocsin.place%' AND query_start > '" +
                           time + "'") > 0;
  }

  // As a move from b to a does.
  void freeze() {
    both.query(1, "INSERT INTO tocsin.move (shard, source, target, driver) VALUES (5, 1, 0, 1)");
    both.query(1, "SELECT tocsin.freeze_shard(5::smallint)");
  }
  void open_in_a() { both.query(0, "SELECT tocsin.open_shard(5::smallint)"); }

  TestDatabase a{0}, b{0};
  const OutboxDatabases both{{a.url(), b.url()}};
  const std::unique_ptr<NodeProcess> node = both.node();
  const std::string key = outbox_key(5), id = std::to_string(1024 * 4 + 5);
  const std::vector<int> unknown{404, 404, 200, 200, 404, 404, 404, 404, 200, 200};
};

TEST_F(OldMap, WhileAShardLivesNowhereItsJobsAreLookedForAtOnce) {
  freeze();
  EXPECT_EQ(ask_all(), unknown);
}

TEST_F(OldMap, WhatWasCreatedWhereAShardHasMovedToIsNotUnknown) {
  freeze();
  open_in_a();
  EXPECT_EQ(ask_all(), (std::vector{503, 503, 503, 503, 503, 503, 503, 503, 503, 409}));
}

TEST_F(OldMap, NoLeaseIsStaleWhereItsShardDoesNotLive) {
  const Json item{{"job_id", id}, {"lease_token", lease_token_text(7)}};
  const auto results = [&] {
    std::set<std::string> all;
    for (const char* const report : {"ack", "nack", "extend"}) {
      Json body{{"items", {item}}};
      if (report == std::string("extend")) body["ttr_ms"] = 1000;
      const Reply reply = node->rest().post(std::string("/v1/leases/") + report, body);
      all.insert(reply.body["items"][0]["result"].get<std::string>());
    }
    return all;
  };
  EXPECT_EQ(results(), std::set<std::string>{"stale"});
  freeze();
  open_in_a();
  EXPECT_EQ(results(), std::set<std::string>{"busy"});
}

// Its rows were locked by the freeze; then they went to the new database.
TEST_F(OldMap, ACancelThatWaitedDoesNotMissItsJobsInTheNewDatabase) {
  both.put_noop(*node);
  both.number(1, create_statement(key, "'2040-01-01'"));
  freeze();
  auto cancelled = std::async(std::launch::async, [&] {
    return Rest(node->port()).post("/v1/jobs/cancel", {{"biz_id", key}});
  });
  ASSERT_TRUE(eventually([&] { return has_looked_since("-infinity"); }));
  open_in_a();
  const std::string opened = both.text(0, "SELECT clock_timestamp()");
  // The looks of a request follow each other: of this one none is on its way that has seen less.
  ASSERT_TRUE(eventually([&] { return has_looked_since(opened); }));
  both.query(1, "SELECT tocsin.thaw_shard(5::smallint)");
  both.query(1, "DELETE FROM tocsin.job_live WHERE shard = 5");
  const Reply reply = cancelled.get();
  EXPECT_EQ(reply.status, 503) << reply.text;
}

TEST_F(OldMap, ARequestWaitsForTheNewMap) {
  both.put_noop(*node);
  freeze();
  open_in_a();
  const auto created = both.number(0, create_statement(key, "'2040-01-01'"));
  auto cancelled = std::async(
      std::launch::async, [&] { return Rest(node->port()).post("/v1/jobs/" + std::to_string(created) + "/cancel"); });
  auto listed = std::async(std::launch::async, [&] { return Rest(node->port()).get("/v1/jobs?biz_id=" + key); });
  ASSERT_TRUE(eventually([&] { return has_looked_since("-infinity"); }));
  both.query(0, "UPDATE tocsin.shard_map SET version = version + 1, places[6] = 0");
  EXPECT_EQ(listed.get().status, 200);
  EXPECT_EQ(cancelled.get().status, 200);
  EXPECT_EQ(both.ids(0, "cancelled").size(), 1U);
}

}  // namespace
}  // namespace tocsin

// Jobs that SQL callers create in a database where their shards do not live: each becomes one job over there, whatever
// dies meanwhile.
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <map>
#include <set>
#include <thread>

#include "postgres/pg_outbox.h"
#include "support/node_process.h"
#include "support/server.h"
#include "support/test_database.h"
#include "tocsin/shard.h"

namespace tocsin {
namespace {

constexpr int kShards = 8;  // of two databases, 0 to 3 begin in a, the others in b

// Every call gives another key.
std::string key_of(int shard) {
  static int last = 0;
  while (true) {
    std::string key = "key-" + std::to_string(++last);
    if (shard_of(key, kShards) == shard) return key;
  }
}

// Several databases of one installation, and nodes on them.
class Databases {
 public:
  explicit Databases(std::vector<std::string> urls) : urls_(std::move(urls)) {
    const Ran ran = run_tocsin(with({"migrate", "--shards", std::to_string(kShards)}));
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
  }

  std::vector<std::string> with(std::vector<std::string> words) const {
    for (std::size_t i = 0; i < urls_.size(); ++i) {
      words.push_back("--database");
      words.push_back(named(i));
    }
    return words;
  }
  std::unique_ptr<NodeProcess> node() const {
    std::vector<std::string> options{"--heartbeat-timeout", "2s"};
    for (std::size_t i = 1; i < urls_.size(); ++i) options.insert(options.end(), {"--database", named(i)});
    return std::make_unique<NodeProcess>(named(0), options);
  }
  // Puts noop, and lets every database know it.
  void put_noop(NodeProcess& node) const {
    ASSERT_LT(node.rest().put("/v1/types/noop", {{"handler", {{"kind", "noop"}}}}).status, 300);
    for (std::size_t i = 0; i < urls_.size(); ++i)
      ASSERT_TRUE(eventually([&] { return number(i, "SELECT count(*) FROM tocsin.biz_type") == 1; }));
  }
  pqxx::result query(std::size_t i, const std::string& sql) const {
    pqxx::connection connection(urls_[i]);
    return pqxx::nontransaction(connection).exec(sql);
  }
  std::int64_t number(std::size_t i, const std::string& sql) const { return query(i, sql)[0][0].as<std::int64_t>(); }
  std::string text(std::size_t i, const std::string& sql) const { return query(i, sql)[0][0].c_str(); }
  // The ids of the jobs with this status in that database; each as often as it is there.
  std::multiset<std::int64_t> ids(std::size_t i, const std::string& status) const {
    std::multiset<std::int64_t> ids;
    for (const auto& row : query(i, "SELECT job_id FROM tocsin.job WHERE status = '" + status + "'"))
      ids.insert(row[0].as<std::int64_t>());
    return ids;
  }
  std::int64_t waiting(std::size_t i) const {
    return number(i, "SELECT count(*) FROM tocsin.outbox WHERE settled_at IS NULL");
  }
  const std::string& url(std::size_t i) const { return urls_[i]; }

 private:
  std::string named(std::size_t i) const { return std::string(1, static_cast<char>('a' + i)) + "=" + urls_[i]; }

  const std::vector<std::string> urls_;
};

std::string create(const std::string& key, const std::string& more = "clock_timestamp()") {
  return "SELECT tocsin.create_job('noop', '" + key + "', " + more + ")";
}

std::string state_of(const std::string& statement, pqxx::connection& connection) {
  try {
    pqxx::nontransaction(connection).exec(statement);
    return "";
  } catch (const pqxx::sql_error& error) {
    return error.sqlstate();
  }
}

using Ids = std::multiset<std::int64_t>;

TEST(Outbox, JobsAreCreatedWithTheirTransactionWhereverTheirShardsLive) {
  TestDatabase a(0), b(0);
  const Databases both({a.url(), b.url()});
  const auto node = both.node();
  both.put_noop(*node);
  a.query("CREATE TABLE public.witness (job_id bigint)");
  Ids at_a, at_b;
  pqxx::connection business(a.url());
  for (const bool is_committed : {true, false, true}) {
    pqxx::work tx(business);
    for (int shard = 0; shard < kShards; ++shard) {
      const auto row = tx.exec1("INSERT INTO public.witness " + create(key_of(shard)) + " RETURNING job_id");
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

TEST(Outbox, WhatCanBeKnownAtOnceIsSaidAtOnce) {
  TestDatabase a(0), b(0);
  const Databases both({a.url(), b.url()});
  both.put_noop(*both.node());
  pqxx::connection business(a.url());
  const std::string here = key_of(0), there = key_of(5);
  for (const std::string& key : {here, there}) {
    const auto state = [&](const std::string& arguments) {
      return state_of("SELECT tocsin.create_job(" + arguments + ")", business);
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
      "GRANT USAGE ON SCHEMA tocsin TO tocsin_test_shop");
  pqxx::work tx(business);
  tx.exec("SET LOCAL ROLE tocsin_test_shop");
  const auto id = tx.exec1(create(key_of(6)))[0].as<std::int64_t>();
  EXPECT_EQ(tx.exec1("SELECT tocsin.cancel_job(" + std::to_string(id) + ")")[0].as<std::string>(), "cancelled");
  EXPECT_THROW(tx.exec("SELECT * FROM tocsin.outbox"), pqxx::sql_error);
}

TEST(Outbox, CancelledBeforeItIsHandedOverAJobNeverRunsAndTheRecordSaysSo) {
  TestDatabase a(0), b(0);
  const Databases both({a.url(), b.url()});
  both.put_noop(*both.node());
  const auto cancel = [&](std::int64_t id) {
    return both.text(0, "SELECT tocsin.cancel_job(" + std::to_string(id) + ")");
  };
  std::int64_t in_one = 0;
  {
    pqxx::connection business(a.url());
    pqxx::work tx(business);
    in_one = tx.exec1(create(key_of(4)))[0].as<std::int64_t>();
    EXPECT_EQ(tx.exec1("SELECT tocsin.cancel_job(" + std::to_string(in_one) + ")")[0].as<std::string>(), "cancelled");
    tx.commit();
  }
  const auto later = both.number(0, create(key_of(5)));
  const auto runs = both.number(0, create(key_of(6), "'2040-01-01'"));
  EXPECT_EQ(cancel(later), "cancelled");
  EXPECT_EQ(cancel(later), "finished");
  const auto node = both.node();
  EXPECT_TRUE(eventually([&] { return both.waiting(0) == 0; }));
  EXPECT_EQ(both.ids(1, "cancelled"), (Ids{in_one, later}));
  EXPECT_EQ(both.ids(1, "pending"), (Ids{runs}));
  EXPECT_TRUE(both.ids(1, "done").empty());
  EXPECT_EQ(node->rest().get("/v1/stats").body["totals"]["cancelled"], 2);
  pqxx::connection business(a.url());
  EXPECT_EQ(state_of("SELECT tocsin.cancel_job(" + std::to_string(runs) + ")", business), "TC001") << "it is there now";
  EXPECT_EQ(both.text(1, "SELECT tocsin.cancel_job(" + std::to_string(runs) + ")"), "cancelled");
}

TEST(Outbox, WhatTheOtherDatabaseRefusesStaysAndIsCounted) {
  TestDatabase a(0), b(0);
  const Databases both({a.url(), b.url()});
  const auto node = both.node();
  both.put_noop(*node);
  const std::string key = key_of(7);
  const auto keyed = [&](int body) {
    return create(key, "'2040-01-01', '{\"n\": " + std::to_string(body) + "}', 'once'");
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
  EXPECT_EQ(entry(other).substr(0, 8), "refused ");
  EXPECT_NE(entry(other).find("another body"), std::string::npos);
  EXPECT_TRUE(eventually([&] {
    return node->rest().get("/metrics").text.find("tocsin_outbox_refused{database=\"a\"} 1") != std::string::npos;
  }));
  EXPECT_NE(node->log().find("was refused"), std::string::npos);
  pqxx::connection business(a.url());
  EXPECT_EQ(state_of("SELECT tocsin.cancel_job(" + std::to_string(same) + ")", business), "TC001");
  EXPECT_EQ(both.text(0, "SELECT tocsin.cancel_job(" + std::to_string(other) + ")"), "not found");
  EXPECT_EQ(both.ids(1, "pending"), (Ids{first}));
}

// A business that repeats its create in another database keeps the id that it was given there.
TEST(Outbox, TheIdOfARepeatedCreateNamesTheJobToEveryVerb) {
  TestDatabase a(0), b(0), c(0);
  const Databases all({a.url(), b.url(), c.url()});
  const auto node = all.node();
  all.put_noop(*node);
  const std::string repeated = create(key_of(7), "'2040-01-01', '{\"n\": 1}', 'once'");
  std::vector<std::int64_t> ids;
  for (const std::size_t place : {2, 0, 1}) {
    ids.push_back(all.number(place, repeated));
    ASSERT_TRUE(eventually([&] { return all.waiting(place) == 0; }));
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
  EXPECT_EQ(many.body["finished"].size(), 1U) << many.text;
  EXPECT_TRUE(many.body["not_found"].empty()) << many.text;
  EXPECT_EQ(all.text(2, "SELECT tocsin.cancel_job(" + std::to_string(ids[1]) + ")"), "finished");
  EXPECT_EQ(all.number(2, "SELECT count(*) FROM tocsin.job"), 1);
}

// Deletions from the outbox wait for a lock that the test holds: the moment between the job and the end of its entry.
class HeldDeletions {
 public:
  explicit HeldDeletions(const std::string& url) : url_(url), connection_(url) {
    pqxx::nontransaction tx(connection_);
    tx.exec(
        "CREATE OR REPLACE FUNCTION public.hold() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM "
        "pg_advisory_xact_lock_shared(42); RETURN OLD; END $$;"
        "CREATE TRIGGER hold BEFORE DELETE ON tocsin.outbox FOR EACH ROW EXECUTE FUNCTION public.hold();"
        "SELECT pg_advisory_lock(42)");
  }
  // REQUIRES: the node that deletes is dead. Its session goes first: the server would finish what it asked for.
  void release() {
    EXPECT_TRUE(eventually([this] {
      pqxx::connection other(url_);
      return pqxx::nontransaction(other)
          .exec(
              "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'tocsin outbox' AND "
              "datname = current_database()")
          .empty();
    }));
    pqxx::nontransaction(connection_).exec("SELECT pg_advisory_unlock(42)");
  }

 private:
  const std::string url_;
  pqxx::connection connection_;
};

TEST(Outbox, KilledBetweenTheJobAndTheEndOfItsEntryItIsNotMadeTwice) {
  TestDatabase a(0), b(0);
  const Databases both({a.url(), b.url()});
  auto node = both.node();
  both.put_noop(*node);
  HeldDeletions held(a.url());
  Ids ids;
  for (const auto& row :
       both.query(0, create(key_of(4)) + " UNION ALL " + create(key_of(5)) + " UNION ALL " + create(key_of(6))))
    ids.insert(row[0].as<std::int64_t>());
  EXPECT_TRUE(eventually([&] { return both.ids(1, "done") == ids; }));
  node->kill();
  EXPECT_EQ(both.waiting(0), 3) << "handed over, and still there";
  EXPECT_EQ(both.number(1, "SELECT count(*) FROM tocsin.relayed"), 3);
  pqxx::connection business(a.url());
  EXPECT_EQ(state_of("SELECT tocsin.cancel_job(" + std::to_string(*ids.begin()) + ")", business), "TC001")
      << "it has run";
  // Even retention forgets before the next node comes.
  both.query(1, "DELETE FROM tocsin.job_history");
  held.release();
  const auto next = both.node();
  EXPECT_TRUE(eventually([&] { return both.waiting(0) == 0; }));
  const auto after = both.number(0, create(key_of(4)));
  EXPECT_TRUE(eventually([&] { return both.ids(1, "done") == Ids{after}; })) << "and nothing else";
  EXPECT_TRUE(both.ids(1, "pending").empty());
}

TEST(Outbox, OneDatabaseThatIsAwayHoldsUpNoOther) {
  TestDatabase a(0), c(0);
  PrivateCluster b;
  const Databases all({a.url(), b.url(), c.url()});
  const auto node = all.node();
  all.put_noop(*node);
  std::map<std::string, std::vector<int>> places;
  const Reply shards = node->rest().get("/v1/shards");
  for (const Json& item : shards.body["items"]) places[item["database"]].push_back(item["shard"]);
  ASSERT_EQ(places.size(), 3U) << shards.text;
  b.crash();
  Ids at_b, at_c;
  for (int i = 0; i < 300; ++i) at_b.insert(all.number(0, create(key_of(places["b"][0]))));
  for (int i = 0; i < 20; ++i) at_c.insert(all.number(0, create(key_of(places["c"][0]))));
  EXPECT_TRUE(eventually([&] { return all.ids(2, "done") == at_c; }));
  EXPECT_EQ(all.waiting(0), 300);
  EXPECT_TRUE(eventually([&] {
    return node->rest().get("/metrics").text.find("tocsin_outbox_waiting{database=\"a\"} 300") != std::string::npos;
  }));
  b.start();
  EXPECT_TRUE(eventually([&] { return all.ids(1, "done") == at_b; }));
  EXPECT_TRUE(eventually([&] { return all.waiting(0) == 0; }));
}

// A business that creates jobs five at a time, every second key, and cancels each fifth job; whatever fails, it goes
// on.
void call_until(const std::atomic<bool>& is_over, const std::string& url, const std::vector<std::string>& keys,
                std::size_t next, std::atomic<int>& created) {
  while (!is_over) {
    try {
      pqxx::connection business(url);
      while (!is_over) {
        pqxx::work tx(business);
        for (int i = 0; i < 5; ++i, next += 2) {
          // The witness is written in the same transaction: so it knows what was committed, answered or not.
          const auto id = tx.exec1(create(keys[next % keys.size()]))[0].as<std::int64_t>();
          const bool is_cancelled =
              i == 4 &&
              tx.exec1("SELECT tocsin.cancel_job(" + std::to_string(id) + ")")[0].as<std::string>() == "cancelled";
          tx.exec_params("INSERT INTO public.witness VALUES ($1, $2)", id, is_cancelled);
        }
        tx.commit();
        created += 5;
      }
    } catch (const pqxx::failure&) {
      // The next connection continues.
    }
  }
}

// Callers in both databases, two nodes that are killed in turn, sessions that the server ends and a database that
// crashes.
TEST(Outbox, UnderFaultsEveryCommittedJobRunsOnceAndNoOther) {
  PrivateCluster a, b;
  const Databases both({a.url(), b.url()});
  std::vector<std::unique_ptr<NodeProcess>> nodes;
  nodes.push_back(both.node());
  nodes.push_back(both.node());
  both.put_noop(*nodes[0]);
  for (std::size_t i : {0U, 1U}) both.query(i, "CREATE TABLE public.witness (job_id bigint, is_cancelled boolean)");

  std::vector<std::string> keys;
  for (int i = 0; i < 4000; ++i) keys.push_back(key_of(i % kShards));
  std::atomic<bool> is_over{false};
  std::atomic<int> created{0};
  const auto call = [&](std::size_t place) { call_until(is_over, both.url(place), keys, place, created); };
  std::thread callers[] = {std::thread(call, 0), std::thread(call, 1)};
  const auto wait_for_more = [&] {
    const int before = created;
    EXPECT_TRUE(eventually([&] { return created > before + 100; }));
  };
  for (int round = 0; round < 4; ++round) {
    wait_for_more();
    auto& node = nodes[static_cast<std::size_t>(round % 2)];
    node->kill();
    wait_for_more();
    for (std::size_t i : {0U, 1U})
      both.query(i, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'tocsin outbox'");
    if (round == 1) {
      b.crash();
      b.start();
    }
    if (round == 2) nodes[1]->process().signal(SIGSTOP);
    wait_for_more();
    if (round == 2) nodes[1]->process().signal(SIGCONT);
    node = both.node();
  }
  is_over = true;
  for (auto& caller : callers) caller.join();
  EXPECT_TRUE(eventually([&] {
    return both.waiting(0) + both.waiting(1) == 0 && both.ids(0, "pending").empty() && both.ids(1, "pending").empty();
  }));
  Ids wanted, cancelled, done, off;
  for (std::size_t i : {0U, 1U}) {
    for (const auto& row : both.query(i, "SELECT job_id, is_cancelled FROM public.witness"))
      (row[1].as<bool>() ? cancelled : wanted).insert(row[0].as<std::int64_t>());
    done.merge(both.ids(i, "done"));
    off.merge(both.ids(i, "cancelled"));
    EXPECT_EQ(both.number(i, "SELECT count(*) FROM tocsin.outbox"), 0);
  }
  EXPECT_EQ(done, wanted);
  EXPECT_EQ(off, cancelled);
  const Json totals = nodes[0]->rest().get("/v1/stats").body["totals"];
  EXPECT_EQ(totals["done"], wanted.size());
  EXPECT_EQ(totals["cancelled"], cancelled.size());
  EXPECT_EQ(totals["pending"], 0);
}

TEST(Outbox, AShardThatMovesMeanwhileTakesWhatIsRememberedAlong) {
  PrivateCluster a, b;
  for (PrivateCluster* cluster : {&a, &b}) {
    execute(cluster->url(), "ALTER SYSTEM SET wal_level = logical");
    cluster->crash();
    cluster->start();
  }
  const Databases both({a.url(), b.url()});
  auto node = both.node();
  both.put_noop(*node);
  const auto move = [&](int shard, const char* to) {
    const Ran ran = run_tocsin(both.with({"shard", "move", std::to_string(shard), "--to", to}));
    EXPECT_EQ(ran.exit_code, 0) << ran.out << ran.err;
  };
  HeldDeletions held(a.url());
  const auto handed_over = both.number(0, create(key_of(4)));
  EXPECT_TRUE(eventually([&] { return both.ids(1, "done") == Ids{handed_over}; }));
  node->kill();
  const auto waiting = both.number(0, create(key_of(5)));
  // Retention forgets the one that ran; its shard, and that of the one that waits, come to the database they were
  // created in.
  both.query(1, "DELETE FROM tocsin.job_history");
  move(4, "a");
  move(5, "a");
  held.release();
  node = both.node();
  EXPECT_TRUE(eventually([&] { return both.waiting(0) == 0; }));
  EXPECT_TRUE(eventually([&] { return both.ids(0, "done") == Ids{waiting}; }));
  EXPECT_EQ(both.number(0, "SELECT count(*) FROM tocsin.relayed"), 2);
  EXPECT_EQ(both.number(1, "SELECT count(*) FROM tocsin.relayed"), 0);
  EXPECT_TRUE(both.ids(0, "pending").empty());
}

TEST(Outbox, WhatItsOwnerLeavesLyingIsAnybodys) {
  TestDatabase a(0), b(0);
  const Databases both({a.url(), b.url()});
  both.put_noop(*both.node());
  both.number(0, create(key_of(4), "'2040-01-01'"));
  Session at_a({a.url()});
  PgOutbox outbox(at_a);
  const std::vector<Shard> shards{4};
  const auto claim_of_others = [&] { return outbox.claim({}, shards, 1, 10)->size(); };
  EXPECT_EQ(claim_of_others(), 0U);
  both.query(0, "UPDATE tocsin.outbox SET gmt_create = gmt_create - interval '11 s'");
  EXPECT_EQ(claim_of_others(), 1U);
}

// The two sides by themselves, for what takes minutes otherwise.
TEST(Outbox, WhatIsRememberedIsForgottenOnlyWhenNobodyCanHandItOverAnyMore) {
  TestDatabase a(0), b(0);
  const Databases both({a.url(), b.url()});
  both.put_noop(*both.node());
  const auto id = both.number(0, create(key_of(4), "'2040-01-01'"));
  Session at_a({a.url()}), at_b({b.url()});
  PgOutbox outbox(at_a);
  PgIntake intake(at_b);
  const std::vector<Shard> shards{4};
  const auto claim = [&](std::int64_t relay) { return *outbox.claim(shards, {}, relay, 10); };
  const WallTime now(Duration(both.number(1, "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint")));
  const auto entries = claim(1);
  ASSERT_EQ(entries.size(), 1U);
  EXPECT_TRUE(claim(1).empty()) << "not within a second";
  EXPECT_TRUE(claim(2).empty()) << "nobody else";
  EXPECT_FALSE(intake.take_over(0, now - std::chrono::seconds(1), entries)) << "read too long ago";
  EXPECT_TRUE(both.ids(1, "pending").empty());

  const auto taken = intake.take_over(0, now + PgIntake::kHandOver, entries);
  ASSERT_TRUE(taken);
  EXPECT_TRUE((*taken)[0].fire_at);
  const auto again = intake.take_over(0, now + PgIntake::kHandOver, entries);
  ASSERT_TRUE(again);
  EXPECT_FALSE((*again)[0].fire_at) << "it was made before";
  EXPECT_EQ((*again)[0].error, "");
  auto another = entries;
  another[0].gmt_create += std::chrono::microseconds(1);
  EXPECT_EQ((*intake.take_over(0, now + PgIntake::kHandOver, another))[0].error, "its job_id is that of another job");
  EXPECT_EQ(both.ids(1, "pending"), (Ids{id}));

  const auto remembered = [&] { return *intake.remembered(0, shards, 10); };
  EXPECT_TRUE(remembered().empty()) << "too young to be looked after";
  both.query(1, "UPDATE tocsin.relayed SET relayed_at = relayed_at - interval '1 hour'");
  EXPECT_EQ(remembered(), std::vector<JobId>{id});
  EXPECT_TRUE(outbox.gone(remembered())->empty()) << "its entry is still there";
  ASSERT_TRUE(outbox.settle(*again));
  EXPECT_EQ(*outbox.gone(remembered()), std::vector<JobId>{id});
  ASSERT_TRUE(intake.note_gone(remembered()));
  EXPECT_TRUE(remembered().empty());
  EXPECT_EQ(both.number(1, "SELECT count(*) FROM tocsin.relayed"), 1) << "somebody may have it in his hands";
  both.query(1, "UPDATE tocsin.relayed SET gone_at = gone_at - interval '11 minutes'");
  EXPECT_TRUE(remembered().empty());
  EXPECT_EQ(both.number(1, "SELECT count(*) FROM tocsin.relayed"), 0);
}

}  // namespace
}  // namespace tocsin

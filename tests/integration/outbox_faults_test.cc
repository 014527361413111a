// Jobs that SQL callers create in a database where their shards do not live: whatever dies meanwhile, each becomes one.
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <map>
#include <set>
#include <thread>

#include "integration/outbox.h"
#include "postgres/pg_outbox.h"

namespace tocsin {
namespace {

TEST(Outbox, ACrashBeforeTheEntryIsDeletedCreatesNoSecondJob) {
  TestDatabase a(0), b(0);
  const OutboxDatabases both({a.url(), b.url()});
  auto node = both.node();
  both.put_noop(*node);
  HeldDeletions held(a.url());
  Ids ids;
  for (const auto& row :
       both.query(0, create_statement(outbox_key(4)) + " UNION ALL " + create_statement(outbox_key(5)) + " UNION ALL " +
                         create_statement(outbox_key(6))))
    ids.insert(row[0].as<std::int64_t>());
  EXPECT_TRUE(eventually([&] { return both.ids(1, "done") == ids; }));
  node->kill();
  EXPECT_EQ(both.waiting(0), 3) << "handed over, and still there";
  EXPECT_EQ(both.number(1, "SELECT count(*) FROM tocsin.relayed"), 3);
  pqxx::connection business(a.url());
  EXPECT_EQ(sqlstate_of("SELECT tocsin.cancel_job(" + std::to_string(*ids.begin()) + ")", business), "TC001")
      << "it has run";
  // Even retention forgets before the next node comes.
  both.query(1, "DELETE FROM tocsin.job_history");
  held.release();
  const auto next = both.node();
  EXPECT_TRUE(eventually([&] { return both.waiting(0) == 0; }));
  const auto after = both.number(0, create_statement(outbox_key(4)));
  EXPECT_TRUE(eventually([&] { return both.ids(1, "done") == Ids{after}; })) << "and nothing else";
  EXPECT_TRUE(both.ids(1, "pending").empty());
}

TEST(Outbox, AnUnavailableDatabaseDelaysNoOther) {
  TestDatabase a(0), c(0);
  PrivateCluster b;
  const OutboxDatabases all({a.url(), b.url(), c.url()});
  const auto node = all.node();
  all.put_noop(*node);
  std::map<std::string, std::vector<int>> shards_of;
  const Reply shards = node->rest().get("/v1/shards");
  for (const Json& item : shards.body["items"]) shards_of[item["database"]].push_back(item["shard"]);
  ASSERT_EQ(shards_of.size(), 3U) << shards.text;
  b.crash();
  Ids at_b, at_c;
  for (int i = 0; i < 300; ++i) at_b.insert(all.number(0, create_statement(outbox_key(shards_of["b"][0]))));
  for (int i = 0; i < 20; ++i) at_c.insert(all.number(0, create_statement(outbox_key(shards_of["c"][0]))));
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
          const auto id = tx.exec1(create_statement(keys[next % keys.size()]))[0].as<std::int64_t>();
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
  const OutboxDatabases both({a.url(), b.url()});
  std::vector<std::unique_ptr<NodeProcess>> nodes;
  nodes.push_back(both.node());
  nodes.push_back(both.node());
  both.put_noop(*nodes[0]);
  for (std::size_t i : {0U, 1U}) both.query(i, "CREATE TABLE public.witness (job_id bigint, is_cancelled boolean)");

  std::vector<std::string> keys;
  for (int i = 0; i < 4000; ++i) keys.push_back(outbox_key(i % kOutboxShards));
  std::atomic<bool> is_over{false};
  std::atomic<int> created{0};
  const auto call = [&](std::size_t database) { call_until(is_over, both.url(database), keys, database, created); };
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

TEST(Outbox, AMoveCopiesTheRecordsOfRelayedEntries) {
  PrivateCluster a, b;
  for (PrivateCluster* cluster : {&a, &b}) {
    execute(cluster->url(), "ALTER SYSTEM SET wal_level = logical");
    cluster->crash();
    cluster->start();
  }
  const OutboxDatabases both({a.url(), b.url()});
  auto node = both.node();
  both.put_noop(*node);
  const auto move = [&](int shard, const char* to) {
    const Ran ran = run_tocsin(both.with({"shard", "move", std::to_string(shard), "--to", to}));
    EXPECT_EQ(ran.exit_code, 0) << ran.out << ran.err;
  };
  HeldDeletions held(a.url());
  const auto handed_over = both.number(0, create_statement(outbox_key(4)));
  EXPECT_TRUE(eventually([&] { return both.ids(1, "done") == Ids{handed_over}; }));
  node->kill();
  const auto waiting = both.number(0, create_statement(outbox_key(5)));
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

TEST(Outbox, AnyNodeMayRelayAnEntryAfterTenSeconds) {
  TestDatabase a(0), b(0);
  const OutboxDatabases both({a.url(), b.url()});
  both.put_noop(*both.node());
  both.number(0, create_statement(outbox_key(4), "'2040-01-01'"));
  Session at_a({a.url()});
  PgOutbox outbox(at_a);
  const std::vector<Shard> shards{4};
  const auto claim_of_others = [&] { return outbox.claim({}, shards, 1, 10)->size(); };
  EXPECT_EQ(claim_of_others(), 0U);
  both.query(0, "UPDATE tocsin.outbox SET gmt_create = gmt_create - interval '11 s'");
  EXPECT_EQ(claim_of_others(), 1U);
}

// The two sides by themselves, for what takes minutes otherwise.
TEST(Outbox, ARecordIsDeletedOnlyWhenNoRelayCanDeliverItAnyMore) {
  TestDatabase a(0), b(0);
  const OutboxDatabases both({a.url(), b.url()});
  both.put_noop(*both.node());
  const auto id = both.number(0, create_statement(outbox_key(4), "'2040-01-01'"));
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

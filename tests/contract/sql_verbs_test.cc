// tocsin.cancel_jobs and tocsin.reschedule_job. On PostgreSQL alone: they are its functions.
#include <gtest/gtest.h>

#include <future>
#include <map>

#include "api/context.h"
#include "pipeline/engine_shared.h"
#include "postgres/pg_client_store.h"
#include "postgres/pg_outbox.h"
#include "postgres/pg_type_store.h"
#include "support/must.h"
#include "support/process.h"
#include "support/test_database.h"

namespace tocsin {
namespace {

using Results = std::map<std::int64_t, std::string>;

class SqlVerbs : public ::testing::Test {
 protected:
  void SetUp() override {
    database.query(
        "INSERT INTO tocsin.biz_type (name, handler, ttr_ms, max_attempts, backoff, catch_up) SELECT name, "
        "'{\"kind\":\"noop\"}', 30000, 16, '{}', '{}' FROM unnest('{noop,other}'::text[]) WITH ORDINALITY t (name, n) "
        "ORDER BY n");
  }
  std::int64_t create(const std::string& biz_id, const std::string& type = "noop") {
    return database.number("SELECT tocsin.create_job('" + type + "', '" + biz_id + "', '2040-01-01')");
  }
  static Results cancel(pqxx::transaction_base& tx, const std::string& arguments) {
    Results results;
    for (const auto& row : tx.exec("SELECT job_id, result FROM tocsin.cancel_jobs(" + arguments + ")"))
      EXPECT_TRUE(results.emplace(row[0].as<std::int64_t>(), row[1].as<std::string>()).second) << "named twice";
    return results;
  }
  Results cancel(const std::string& arguments) {
    pqxx::connection connection(database.url());
    pqxx::nontransaction tx(connection);
    return cancel(tx, arguments);
  }
  std::string reschedule(std::int64_t id, const std::string& time) {
    return database.query("SELECT tocsin.reschedule_job(" + std::to_string(id) + ", " + time + ")")[0][0].c_str();
  }
  std::string state_of(const std::string& statement) {
    try {
      database.query(statement);
    } catch (const pqxx::sql_error& error) {
      return error.sqlstate();
    }
    return "";
  }
  bool is_a_session_waiting() {
    return eventually([&] { return database.number("SELECT count(*) FROM pg_locks WHERE NOT granted") > 0; });
  }
  // Whether the session that waits for a lock has a transaction id.
  bool has_waiting_session_an_id() {
    pqxx::result waiting;
    EXPECT_TRUE(eventually([&] {
      waiting = database.query(
          "SELECT backend_xid IS NOT NULL FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = "
          "current_database()");
      return !waiting.empty();
    }));
    return !waiting.empty() && waiting[0][0].as<bool>();
  }

  TestDatabase database{16};
};

// Such a removal may still be refused, in another database.
TEST_F(SqlVerbs, ACreateIsRepeatedWhileTheRemovalOfItsTypeIsUndecided) {
  Session session({database.url(), "types"});
  PgTypeStore types(session);
  const auto found = types.find("noop");
  ASSERT_TRUE(found && *found);
  const auto removed = types.remove("noop", TypeStore::Registry::copy, std::nullopt);
  ASSERT_TRUE(removed && *removed == TypeStore::RemoveReply::removed);
  EXPECT_THROW(create("a"), pqxx::serialization_failure);
  BizType decided = **found;
  decided.gmt_modified += std::chrono::hours(1);
  ASSERT_TRUE(types.mirror({&decided, 1}));
  EXPECT_GT(create("a"), 0) << "the type stays";
  decided.gmt_modified += std::chrono::hours(1);
  decided.is_removed = true;
  ASSERT_TRUE(types.mirror({&decided, 1}));
  EXPECT_EQ(state_of("SELECT tocsin.create_job('noop', 'b', '2040-01-01')"), "23503");
  EXPECT_EQ(state_of("SELECT tocsin.create_job('none', 'b', '2040-01-01')"), "23503");
}

// A shard that moves here has its rows here before it lives here.
TEST_F(SqlVerbs, ACopyOfAMovingShardIsNeitherCancelledNorRescheduled) {
  const std::int64_t id = create("moving");
  const std::string job = std::to_string(id);
  database.query("SELECT tocsin.set_shards_here(array_remove(ARRAY(SELECT generate_series(0, 15)::smallint), " +
                 std::to_string(id & 1023) + "::smallint))");
  EXPECT_EQ(state_of("SELECT tocsin.cancel_job(" + job + ")"), "TC001");
  EXPECT_EQ(state_of("SELECT tocsin.reschedule_job(" + job + ", '2040-01-02')"), "TC001");
  EXPECT_EQ(state_of("SELECT * FROM tocsin.cancel_jobs('moving')"), "TC001");
  Session session{SessionConfig{database.url(), "test", 15'000, 50, false}};
  PgClientStore client_store(session, 16);
  const JobId ids[] = {id};
  const auto by_id = client_store.cancel(ids, LockWait::some_seconds);
  EXPECT_TRUE(!by_id || by_id->front().kind == CancelReply::Kind::locked);
  ChangeBatch batch;
  batch.cancels = {id};
  batch.key_cancels = {{"moving", {}}};
  const auto together = client_store.change_together(batch);
  EXPECT_TRUE(!together || (must(together->cancels.front()).kind != CancelReply::Kind::cancelled &&
                            must(together->key_cancels.front()).cancelled.empty()));
  EXPECT_EQ(database.number("SELECT count(*) FROM tocsin.job_live WHERE job_id = " + job + " AND status = 0"), 1);
  EXPECT_EQ(database.number("SELECT count(*) FROM tocsin.job_history"), 0);
}

TEST_F(SqlVerbs, CancelJobsTakesAllOfAKeyOrRefuses) {
  database.query("SELECT count(tocsin.create_job('noop', 'o', '2040-01-01')) FROM generate_series(1, " +
                 std::to_string(kMostJobsPerCall) + ")");
  create("o", "other");
  EXPECT_EQ(state_of("SELECT * FROM tocsin.cancel_jobs('o')"), "54000");
  EXPECT_EQ(database.number("SELECT count(*) FROM tocsin.job WHERE status = 'pending'"),
            std::int64_t{kMostJobsPerCall + 1});
  EXPECT_EQ(cancel("'o', 'noop'").size(), kMostJobsPerCall) << "as many as there may be";
  EXPECT_EQ(database.number("SELECT count(*) FROM tocsin.job WHERE status = 'pending'"), 1);
}

TEST_F(SqlVerbs, CancelJobsTakesAllOfAKeyOrThoseOfOneType) {
  const auto first = create("o"), second = create("o"), other = create("o", "other"), stranger = create("p");
  EXPECT_EQ(cancel("'o', 'noop'"), (Results{{first, "cancelled"}, {second, "cancelled"}}));
  EXPECT_EQ(cancel("'o'"), (Results{{first, "finished"}, {second, "finished"}, {other, "cancelled"}}));
  EXPECT_EQ(cancel("'nobody'"), Results{});
  EXPECT_EQ(database.number("SELECT count(*) FROM tocsin.job_live WHERE job_id = " + std::to_string(stranger)), 1);
  EXPECT_EQ(database.number("SELECT sum(n) FROM tocsin.job_stats WHERE status = 'cancelled'"), 3);
  EXPECT_EQ(database.number("SELECT sum(n) FROM tocsin.job_stats WHERE status = 'pending'"), 1);
}

TEST_F(SqlVerbs, CancelJobsReportsRunningJobs) {
  const auto id = create("o");
  database.query("UPDATE tocsin.job_live SET status = 1, claim_token = 7, attempts = 1");
  EXPECT_EQ(cancel("'o'"), (Results{{id, "running"}}));
}

TEST_F(SqlVerbs, CancelJobsBelongsToTheCallersTransaction) {
  const auto id = create("o");
  pqxx::connection first(database.url());
  auto open = std::make_unique<pqxx::work>(first);
  EXPECT_EQ(cancel(*open, "'o'"), (Results{{id, "cancelled"}}));
  auto second = std::async(std::launch::async, [&] { return cancel("'o'"); });
  EXPECT_TRUE(is_a_session_waiting());
  open.reset();  // rolled back
  EXPECT_EQ(second.get(), (Results{{id, "cancelled"}}));

  const auto next = create("q");
  open = std::make_unique<pqxx::work>(first);
  EXPECT_EQ(cancel(*open, "'q'"), (Results{{next, "cancelled"}}));
  second = std::async(std::launch::async, [&] { return cancel("'q'"); });
  EXPECT_TRUE(is_a_session_waiting());
  open->commit();
  EXPECT_EQ(second.get(), (Results{{next, "finished"}}));
}

TEST_F(SqlVerbs, CancelJobsNamesEndedJobsUpToABound) {
  database.query("SELECT tocsin.create_job('noop', 'past', '2040-01-01') FROM generate_series(1, 1005)");
  EXPECT_EQ(cancel("'past'").size(), 1005U);
  const auto id = create("past");
  const auto results = cancel("'past'");
  EXPECT_EQ(results.size(), 1001U);
  EXPECT_EQ(results.at(id), "cancelled");
}

TEST_F(SqlVerbs, WrongInputIsRefused) {
  EXPECT_EQ(state_of("SELECT * FROM tocsin.cancel_jobs('')"), "23514");
  EXPECT_EQ(state_of("SELECT * FROM tocsin.cancel_jobs(NULL)"), "23514");
  EXPECT_EQ(state_of("SELECT * FROM tocsin.cancel_jobs('o', 'nonsense')"), "23503");
  for (const char* time : {"NULL", "'1999-12-31 00:00:00+00'", "now() + interval '51 years'", "'infinity'"})
    EXPECT_EQ(state_of(std::string("SELECT tocsin.reschedule_job(1024, ") + time + ")"), "22008") << time;
}

TEST_F(SqlVerbs, RescheduleJobAnswersDefinitely) {
  const auto id = create("o");
  const std::string of_job = " FROM tocsin.job_live WHERE job_id = " + std::to_string(id);
  EXPECT_EQ(reschedule(id, "'2041-01-01 00:00:00+00'"), "rescheduled");
  EXPECT_EQ(database.number("SELECT count(*)" + of_job +
                            " AND action_time = '2041-01-01 00:00:00+00' AND fire_at = action_time"),
            1);
  EXPECT_EQ(reschedule(id, "'2020-01-01 00:00:00+00'"), "rescheduled");
  EXPECT_EQ(database.number("SELECT count(*)" + of_job +
                            " AND action_time = '2020-01-01 00:00:00+00' AND fire_at > now() - interval '1 minute'"),
            1)
      << "the deadline is kept, and no scan has passed the due time";
  database.query("UPDATE tocsin.job_live SET status = 1, claim_token = 7, attempts = 1");
  EXPECT_EQ(reschedule(id, "'2041-01-01'"), "running");
  const auto gone = create("p");
  cancel("'p'");
  EXPECT_EQ(reschedule(gone, "'2041-01-01'"), "finished");
  EXPECT_EQ(reschedule(1024, "'2041-01-01'"), "not found");
}

// A transaction whose snapshot shows another state than the job has now.
TEST_F(SqlVerbs, AnOldSnapshotGivesNoAnswerAboutAJobThatHasChangedSince) {
  const std::string columns = "job_id, action_time, fire_at, gmt_create, type_id, shard, max_attempts, biz_id";
  for (const std::string verb : {"tocsin.cancel_job(", "tocsin.reschedule_job("}) {
    const auto call = [&](std::int64_t id) {
      return "SELECT " + verb + std::to_string(id) + (verb.find("cancel") == verb.npos ? ", '2041-01-01')" : ")");
    };
    const auto id_is = [](std::int64_t id) { return " WHERE job_id = " + std::to_string(id); };
    const auto running = create("o"), finished = create("o"), retried = create("o"), revived = create("of " + verb);
    for (const auto id : {running, retried})
      database.query("UPDATE tocsin.job_live SET status = 1, attempts = 1, claim_token = 7, node = 'n'" + id_is(id));
    for (const auto id : {finished, revived}) database.query("SELECT tocsin.cancel_job(" + std::to_string(id) + ")");

    pqxx::connection connection(database.url());
    pqxx::transaction<pqxx::isolation_level::repeatable_read> tx(connection);
    tx.exec("SELECT FROM tocsin.job_live");
    database.query("UPDATE tocsin.job_live SET status = 0, claim_token = NULL" + id_is(retried));
    database.query("WITH d AS (DELETE FROM tocsin.job_history" + id_is(revived) +
                   " RETURNING *) INSERT INTO tocsin.job_live (" + columns + ", gmt_modified) SELECT " + columns +
                   ", now() FROM d");
    {
      pqxx::connection other(database.url());
      pqxx::work handler(other);
      handler.exec("SELECT FROM tocsin.job_live" + id_is(running) + " FOR UPDATE");
      tx.exec("SET LOCAL lock_timeout = '100ms'");
      EXPECT_EQ(tx.exec1(call(running))[0].as<std::string>(), "running") << verb << "a lock is no change";
    }
    EXPECT_EQ(tx.exec1(call(finished))[0].as<std::string>(), "finished") << verb;
    for (const std::string table : {"tocsin.job_live", "tocsin.job_history"})
      EXPECT_NO_THROW(database.query("SELECT FROM " + table + " FOR UPDATE NOWAIT")) << "the call keeps no lock";
    for (const auto id : {retried, revived})
      EXPECT_THROW(pqxx::subtransaction(tx).exec(call(id)), pqxx::serialization_failure) << verb << id;
    pqxx::subtransaction of_key(tx);
    EXPECT_THROW(cancel(of_key, of_key.quote("of " + verb)), pqxx::serialization_failure);
  }
}

TEST_F(SqlVerbs, HintsLookAsFarAheadAsThoseOfNodes) {
  EXPECT_EQ(Duration(database.number("SELECT (extract(epoch FROM tocsin.hint_window()) * 1000000)::bigint")),
            EngineConfig{}.hint_window());
  EXPECT_EQ(kHintWindow, EngineConfig{}.hint_window()) << "those of the API";
}

TEST_F(SqlVerbs, RescheduleJobNotifiesNodesOfJobsDueSoon) {
  const auto id = create("o");
  std::vector<std::string> heard;
  class Listener final : public pqxx::notification_receiver {
   public:
    Listener(pqxx::connection& connection, std::vector<std::string>& heard)
        : pqxx::notification_receiver(connection, "tocsin_due"), heard_(heard) {}
    void operator()(const std::string& payload, int) override { heard_.push_back(payload); }

   private:
    std::vector<std::string>& heard_;
  };
  pqxx::connection connection(database.url());
  const Listener listener(connection, heard);
  reschedule(id, "'2041-01-01'");
  EXPECT_EQ(connection.get_notifs(), 0);
  reschedule(id, "clock_timestamp() + interval '3 seconds'");
  EXPECT_TRUE(eventually([&] { return connection.get_notifs() + static_cast<int>(heard.size()) > 0; }));
  ASSERT_EQ(heard.size(), 1U);
  EXPECT_EQ(heard[0].rfind(std::to_string(id) + " 1 ", 0), 0U) << heard[0];
}

TEST_F(SqlVerbs, JobsOfOtherDatabasesAreRefusedOrWaitInTheOutbox) {
  const auto shard = database.number("SELECT tocsin.shard_of('o', 16)");
  const auto job = create("o");
  database.query("SELECT tocsin.set_shards_here(array_remove(ARRAY(SELECT generate_series(0, 15)::smallint), " +
                 std::to_string(shard) + "::smallint))");
  EXPECT_EQ(state_of("SELECT * FROM tocsin.cancel_jobs('o')"), "TC001");
  EXPECT_EQ(state_of("SELECT tocsin.reschedule_job(" + std::to_string(1024 * 777 + shard) + ", '2041-01-01')"),
            "TC001");
  EXPECT_EQ(reschedule(9223372036854775807, "'2041-01-01'"), "not found") << "of no shard at all";
  static_cast<void>(job);
  const auto entry = create("o");  // goes to the outbox
  ASSERT_EQ(database.number("SELECT count(*) FROM tocsin.outbox WHERE job_id = " + std::to_string(entry)), 1);
  EXPECT_EQ(reschedule(entry, "'2041-01-01 00:00:00+00'"), "rescheduled");
  EXPECT_EQ(database.number("SELECT count(*) FROM tocsin.outbox WHERE action_time = '2041-01-01 00:00:00+00'"), 1);
  EXPECT_EQ(database.query("SELECT tocsin.cancel_job(" + std::to_string(entry) + ")")[0][0].as<std::string>(),
            "cancelled");
  EXPECT_EQ(reschedule(entry, "'2042-01-01'"), "finished");
}

TEST_F(SqlVerbs, ALookupFindsEntriesByJobAndByKeyUntilTheyAreSettled) {
  const auto shard = static_cast<Shard>(database.number("SELECT tocsin.shard_of('o', 16)"));
  database.query("SELECT tocsin.set_shards_here(array_remove(ARRAY(SELECT generate_series(0, 15)::smallint), " +
                 std::to_string(shard) + "::smallint))");
  const JobId entry = create("o");
  Session session(SessionConfig{.url = database.url()});
  PgOutboxLookup lookup(session);
  const std::vector<EntryQuery> queries{{entry, ""}, {0, "o"}, {entry + 1024, ""}, {0, "other"}, {0, ""}};
  const auto look = [&] {
    const auto waiting = lookup.are_waiting(queries);
    EXPECT_TRUE(waiting) << waiting.error().message;
    return *waiting;
  };
  EXPECT_EQ(look(), (std::vector<bool>{true, true, false, false, false}));
  EXPECT_TRUE(lookup.announce());
  database.query("UPDATE tocsin.outbox SET settled_at = now(), error = 'refused'");
  EXPECT_EQ(look(), std::vector<bool>(5, false));
}

TEST_F(SqlVerbs, ALookupTellsWhichShardsLiveHere) {
  Session session(SessionConfig{.url = database.url()});
  PgOutboxLookup lookup(session);
  EXPECT_EQ(lookup.shards_here()->living, ShardSet{}.set()) << "a single database has all shards";
  database.query("SELECT tocsin.set_shards_here(ARRAY[2, 7]::smallint[])");
  EXPECT_EQ(lookup.shards_here()->living, ShardSet{}.set(2).set(7));
  EXPECT_TRUE(lookup.shards_here()->partner.empty());
  database.query("SELECT tocsin.set_shards_here(ARRAY[]::smallint[])");
  EXPECT_EQ(lookup.shards_here()->living, ShardSet{});
  database.query("UPDATE tocsin.place SET place = 3");
  database.query(
      "INSERT INTO tocsin.move (shard, source, target, driver) VALUES (7, 3, 5, 1), (2, 4, 3, 1), (1, 4, 5, 1)");
  EXPECT_EQ(lookup.shards_here()->partner, (std::map<Shard, DatabaseId>{{2, 4}, {7, 5}}));
}

// It waited as long as its creator wanted it to: only the time since the new deadline is lateness.
TEST_F(SqlVerbs, AnEntryMovedToThePastIsLateSinceItsReschedule) {
  const auto shard = static_cast<Shard>(database.number("SELECT tocsin.shard_of('o', 16)"));
  database.query("SELECT tocsin.set_shards_here(array_remove(ARRAY(SELECT generate_series(0, 15)::smallint), " +
                 std::to_string(shard) + "::smallint))");
  const auto now = [&] {
    return WallTime(Duration(database.number("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint")));
  };
  const JobId past = create("o"), future = create("o");
  const WallTime before = now();
  for (const JobId id : {past, future}) EXPECT_EQ(reschedule(id, "'2020-01-01'"), "rescheduled");
  EXPECT_EQ(reschedule(future, "'2041-01-01'"), "rescheduled");
  const WallTime after = now();
  database.query("SELECT tocsin.set_shards_here(ARRAY(SELECT generate_series(0, 15)::smallint))");

  Session session(SessionConfig{.url = database.url()});
  PgOutbox outbox(session);
  const auto entries = outbox.claim(std::vector<Shard>{shard}, {}, 1, 10);
  ASSERT_TRUE(entries) << entries.error().message;
  ASSERT_EQ(entries->size(), 2U);
  ASSERT_TRUE(PgIntake(session).take_over(1, after + PgIntake::kHandOver, *entries));
  const auto jobs = PgClientStore(session, 16).find(std::vector<JobId>{past, future});
  ASSERT_TRUE(jobs && jobs->at(0) && jobs->at(1));
  EXPECT_GE(jobs->at(0)->due_at(), before);
  EXPECT_LE(jobs->at(0)->due_at(), after);
  EXPECT_FALSE(jobs->at(1)->late_from);
}

// Its shard has moved here, and the relay has not deleted the entry yet.
TEST_F(SqlVerbs, AnEntryThatIsAJobHereIsCancelledOnce) {
  const auto job = create("o");
  database.query(
      "INSERT INTO tocsin.outbox (job_id, shard, biz_id, type_id, action_time, max_attempts, gmt_create) SELECT "
      "job_id, shard, biz_id, type_id, action_time, max_attempts, gmt_create FROM tocsin.job_live");
  EXPECT_EQ(cancel("'o'"), (Results{{job, "cancelled"}}));
}

// The id that create_job returned for an entry whose idempotency key another job had.
TEST_F(SqlVerbs, AnAliasIdIsFoundByEveryVerb) {
  const auto job = create("o");
  const std::int64_t id = 777 * 1024 + job % 1024;
  database.query("INSERT INTO tocsin.relayed VALUES (" + std::to_string(id) + ", 1, now(), now(), NULL, " +
                 std::to_string(job) + ")");
  Session session(SessionConfig{.url = database.url()});
  PgClientStore client_store(session, 16);
  const std::vector<JobId> ids{id};
  const auto found = client_store.find(ids);
  ASSERT_TRUE(found && found->front());
  EXPECT_EQ(found->front()->job_id, job);

  EXPECT_EQ(reschedule(id, "'2041-01-01'"), "rescheduled");
  ChangeBatch batch;
  batch.changes = {{id, {}}};
  auto reply = client_store.change_together(batch);
  ASSERT_TRUE(reply);
  EXPECT_EQ(must(reply->changes.front()).kind, ChangeReply::Kind::changed);
  EXPECT_EQ(must(reply->changes.front()).job->job_id, job);
  batch = {};
  batch.cancels = {id, job, id};
  reply = client_store.change_together(batch);
  ASSERT_TRUE(reply);
  int cancelled = 0;
  for (const auto& each : reply->cancels) {
    cancelled += must(each).kind == CancelReply::Kind::cancelled;
    EXPECT_EQ(must(each).job_id, job);
  }
  EXPECT_EQ(cancelled, 1);
  const auto many = client_store.cancel(ids, LockWait::some_seconds);
  ASSERT_TRUE(many);
  EXPECT_EQ(many->front().kind, CancelReply::Kind::finished);
  EXPECT_EQ(database.query("SELECT tocsin.cancel_job(" + std::to_string(id) + ")")[0][0].as<std::string>(), "finished");
}

TEST_F(SqlVerbs, AnAliasIdRevivesItsDeadJobOnce) {
  constexpr JobId kDead = 7 * 1024, kAlias = 777 * 1024;
  database.query(
      "INSERT INTO tocsin.job_history (job_id, action_time, fire_at, gmt_create, finished_at, type_id, shard, status, "
      "attempts, max_attempts, biz_id) VALUES (" +
      std::to_string(kDead) + ", now(), now(), now(), now(), 1, 0, 4, 3, 3, 'o')");
  database.query("INSERT INTO tocsin.relayed VALUES (" + std::to_string(kAlias) + ", 1, now(), now(), NULL, " +
                 std::to_string(kDead) + ")");
  Session session(SessionConfig{.url = database.url()});
  PgClientStore client_store(session, 16);
  const auto replies = must(client_store.retry_each(std::vector<JobId>{kAlias, kAlias}));
  EXPECT_EQ(must(replies[0]).kind, ChangeReply::Kind::changed);
  EXPECT_EQ(must(replies[0]).job->job_id, kDead);
  EXPECT_EQ(must(replies[1]).kind, ChangeReply::Kind::pending) << "one caller is told that it revived the job";
}

// Its caller may cancel by it at any time until the job is due, and ask what became of it.
TEST_F(SqlVerbs, AnAliasIdIsKeptAsLongAsItsJob) {
  const auto job = create("o");
  const std::int64_t id = 777 * 1024 + job % 1024;
  database.query("INSERT INTO tocsin.relayed VALUES (" + std::to_string(id) +
                 ", 1, now(), now() - interval '30 days', NULL, " + std::to_string(job) + ")");
  Session session(SessionConfig{.url = database.url()});
  const std::vector<Shard> shards{static_cast<Shard>(job % 1024)};
  const auto may_be_forgotten = [&] {
    const auto ids = PgIntake(session).remembered(1, shards, 10);
    return ids && *ids == std::vector<JobId>{id};
  };
  EXPECT_FALSE(may_be_forgotten()) << "its timer is armed";
  database.query("SELECT tocsin.cancel_job(" + std::to_string(id) + ")");
  EXPECT_FALSE(may_be_forgotten()) << "its record is kept";
  database.query("DELETE FROM tocsin.job_history");
  EXPECT_TRUE(may_be_forgotten());
}

// The xmin watermark tells by transaction ids how old a row can be that is still to come. So the id comes before the
// clock that a row's time is read from, which is before the first lock that a caller can wait for.
TEST_F(SqlVerbs, ACreateHasItsTransactionIdBeforeItReadsItsClock) {
  pqxx::connection creator(database.url()), holder(database.url());
  const std::string create = "SELECT tocsin.create_job('noop', 'o', '2040-01-01')";
  pqxx::nontransaction(creator).exec(create);  // the types of its variables are known: they need no lock again
  auto held = std::make_unique<pqxx::work>(holder);
  held->exec("LOCK TABLE tocsin.biz_type IN ACCESS EXCLUSIVE MODE");
  auto waiting = std::async(std::launch::async, [&] { pqxx::nontransaction(creator).exec(create); });
  EXPECT_TRUE(has_waiting_session_an_id());
  held.reset();
  waiting.get();
}

TEST_F(SqlVerbs, ARescheduleHasItsTransactionIdBeforeItReadsItsClock) {
  const auto id = create("o");
  pqxx::connection caller(database.url()), holder(database.url());
  auto held = std::make_unique<pqxx::work>(holder);
  held->exec("LOCK TABLE tocsin.job_live IN ACCESS EXCLUSIVE MODE");
  auto waiting = std::async(std::launch::async, [&] {
    pqxx::nontransaction(caller).exec("SELECT tocsin.reschedule_job(" + std::to_string(id) + ", '2041-01-01')");
  });
  EXPECT_TRUE(has_waiting_session_an_id());
  held.reset();
  waiting.get();
}

TEST_F(SqlVerbs, ATakeoverHasItsTransactionIdBeforeItWaits) {
  database.query("ALTER FUNCTION tocsin.take_over SET lock_timeout = '1min'");
  pqxx::connection relay(database.url()), holder(database.url());
  auto held = std::make_unique<pqxx::work>(holder);
  held->exec("INSERT INTO tocsin.relayed (job_id, source, gmt_create, relayed_at) VALUES (1024, 1, now(), now())");
  auto waiting = std::async(std::launch::async, [&] {
    pqxx::nontransaction(relay).exec(
        "SELECT tocsin.take_over(1::smallint, now() + '1 minute', '{1024}', '{1}', '{1}', '{f}', ARRAY[now()], "
        "ARRAY[now()], '{NULL}', '{NULL}', '{o}', '{NULL}', '{NULL}', '{NULL}')");
  });
  EXPECT_TRUE(has_waiting_session_an_id());
  held.reset();
  waiting.get();
}

}  // namespace
}  // namespace tocsin

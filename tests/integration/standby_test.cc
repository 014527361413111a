// Two cases of a standby. A synchronous one does not answer: each commit waits for it, and other sessions do not see
// the rows of a commit that waits. A lagging one is promoted without the last commits.
#include <gtest/gtest.h>

#include <set>
#include <thread>

#include "integration/quiet_housekeeping.h"
#include "postgres/pg_client_store.h"
#include "postgres/session.h"
#include "postgres/sql_text.h"
#include "support/manual_clock.h"
#include "support/node_process.h"
#include "support/process.h"
#include "support/server.h"
#include "support/test_database.h"

namespace tocsin {
namespace {

using std::chrono::milliseconds;

constexpr int kStandbyShards = 4;

void put_type(const std::string& url) {
  execute(url,
          "INSERT INTO tocsin.biz_type (type_id, name, handler, ttr_ms, max_attempts, backoff, catch_up) OVERRIDING "
          "SYSTEM VALUE VALUES (1, 'hook', '{\"kind\":\"webhook\"}', 30000, 3, '{}', '{}')");
}

NewJob job_of_type_1(const std::string& biz_id) {
  NewJob job;
  job.type_id = 1;
  job.biz_id = biz_id;
  job.when.in = std::chrono::hours(1);
  return job;
}

class SilentStandby : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    cluster = new PrivateCluster;
    const Ran ran = run_tocsin({"migrate", "--database", cluster->url(), "--shards", std::to_string(kStandbyShards)});
    if (ran.exit_code != 0) throw std::runtime_error("the migration failed: " + ran.err);
    put_type(cluster->url());
    execute(cluster->url(), "CREATE TABLE public.noted (n int)");
  }
  static void TearDownTestSuite() {
    delete cluster;
    cluster = nullptr;
  }

  SilentStandby() {
    ask("TRUNCATE public.noted");
    EXPECT_TRUE(count_noted());
  }
  ~SilentStandby() override {
    find_standby();
    EXPECT_TRUE(eventually([&] { return waiting() == 0; }));
  }

  // From now on commits wait. The server notices the setting a little later: a commit that waits shows it.
  void lose_standby() {
    ask("ALTER SYSTEM SET synchronous_standby_names = 'nobody'");
    ask("SELECT pg_reload_conf()");
    Session probe({cluster->url(), "probe"});
    probe.answer_within(milliseconds(1));
    const auto waits = [&] {
      const Status done = probe.write([](pqxx::nontransaction& tx) { tx.exec(kCommit); });
      return !done && done.error().code == ErrorCode::in_doubt && waiting() > 0;
    };
    EXPECT_TRUE(eventually(waits));
    EXPECT_TRUE(ends_the_wait("pg_terminate_backend"));
  }
  void find_standby() {
    ask("ALTER SYSTEM RESET synchronous_standby_names");
    ask("SELECT pg_reload_conf()");
  }
  // On a connection of a stranger, which commits nothing.
  pqxx::result ask(const std::string& sql) {
    pqxx::connection connection(cluster->url());
    return pqxx::nontransaction(connection).exec(sql);
  }
  std::int64_t number(const std::string& sql) { return ask(sql)[0][0].as<std::int64_t>(); }
  std::int64_t waiting(const std::string& what = "pid") {
    return number("SELECT count(" + what + ") FROM pg_stat_activity WHERE wait_event = 'SyncRep'");
  }
  bool ends_the_wait(const std::string& how) {
    return eventually([&] { return waiting(how + "(pid)") > 0; }) && eventually([&] { return waiting() == 0; });
  }

  Status note() {
    return session.write([](pqxx::nontransaction& tx) { tx.exec("INSERT INTO public.noted VALUES (1)"); });
  }
  Result<int> count_noted() {
    return session.read<int>(
        [](pqxx::nontransaction& tx) { return tx.exec1("SELECT count(*) FROM public.noted")[0].as<int>(); });
  }
  // A write whose commit waits for the standby, and which is given up.
  void note_in_doubt() {
    lose_standby();
    session.answer_within(kShort);
    const Status noted = note();
    ASSERT_FALSE(noted);
    ASSERT_EQ(noted.error().code, ErrorCode::in_doubt) << noted.error().message;
  }
  void expect_noted_when_it_answers() {
    find_standby();
    Result<int> n = 0;
    ASSERT_TRUE(eventually([&] { return (n = count_noted()).ok(); })) << n.error().message;
    EXPECT_EQ(*n, 1);
  }
  void expect_unavailable() {
    const auto n = count_noted();
    ASSERT_FALSE(n) << "read " << *n << ", which a promoted standby does not have";
    EXPECT_EQ(n.error().code, ErrorCode::unavailable) << n.error().message;
  }

  static constexpr milliseconds kShort{1'000};
  static constexpr const char* kCommit = "SELECT pg_logical_emit_message(true, 'test', '')";
  static inline PrivateCluster* cluster = nullptr;  // of all tests: nothing but the setting differs
  Session session{{cluster->url(), "silent standby"}};
};

TEST_F(SilentStandby, ACommitThatWaitsForItIsNotEndedAndNotRead) {
  note_in_doubt();
  session.answer_within(Duration::max());
  for (int i = 0; i < 3; ++i) expect_unavailable();
  EXPECT_EQ(waiting(), 1) << "no further commit waits";
  EXPECT_EQ(number("SELECT count(*) FROM public.noted"), 0) << "the standby lacks it";
  expect_noted_when_it_answers();
}

// By an operator, or by a crash and a restart.
TEST_F(SilentStandby, WhatBecameVisibleWithoutItIsNotReadAfterDoubt) {
  note_in_doubt();
  ASSERT_TRUE(ends_the_wait("pg_terminate_backend"));
  ASSERT_EQ(number("SELECT count(*) FROM public.noted"), 1);
  for (int i = 0; i < 2; ++i) expect_unavailable();
  EXPECT_EQ(waiting(), 1) << "further tries leave no more commits that wait";
  session.answer_within(Duration::max());
  expect_noted_when_it_answers();
}

// PostgreSQL reports the success of a commit whose wait was cancelled, with a warning.
TEST_F(SilentStandby, ACommitWhoseWaitWasCancelledIsInDoubt) {
  lose_standby();
  bool is_cancelled = false;
  std::thread cancels([&] { is_cancelled = ends_the_wait("pg_cancel_backend"); });
  const Status noted = note();
  cancels.join();
  ASSERT_TRUE(is_cancelled);
  ASSERT_FALSE(noted) << "acknowledged, and the standby lacks it";
  EXPECT_EQ(noted.error().code, ErrorCode::in_doubt) << noted.error().message;
  session.answer_within(kShort);
  expect_unavailable();
}

TEST_F(SilentStandby, ACreateThatItLacksIsNotAcknowledged) {
  PgClientStore store(session, kStandbyShards);
  const NewJob job = job_of_type_1("order");
  ASSERT_TRUE(store.create({&job, 1}, CreateMode::each_by_itself)) << "while no commit waits for a standby";
  lose_standby();
  session.answer_within(kShort);
  const auto created = store.create({&job, 1}, CreateMode::each_by_itself);
  ASSERT_FALSE(created) << "acknowledged, and the standby lacks it";
  EXPECT_EQ(created.error().code, ErrorCode::in_doubt) << created.error().message;
  EXPECT_EQ(number("SELECT count(*) FROM tocsin.job WHERE biz_id = 'order'"), 1);
}

TEST_F(SilentStandby, CreatesThatAreGivenUpLeaveOneProcess) {
  lose_standby();
  session.answer_within(kShort);
  PgClientStore store(session, kStandbyShards);  // has no ids yet
  const NewJob job = job_of_type_1("many");
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(store.create({&job, 1}, CreateMode::each_by_itself));
  EXPECT_EQ(waiting(), 1);
}

// Both statements of a create that come before the insert. PgClientStore::warm_up() executes the insert, too.
// PostgreSQL logs a sequence for 32 numbers in advance: 100 are logged in any case.
TEST_F(SilentStandby, DrawingIdsDoesNotWaitForIt) {
  lose_standby();
  session.answer_within(std::chrono::seconds(10));  // the statements take some time, too
  const Status drawn = session.read([](pqxx::nontransaction& tx) {
    tx.exec(sql::statement("raise_ids"));
    tx.exec_params(sql::statement("reserve_ids"), 100);
  });
  EXPECT_TRUE(drawn) << drawn.error().message;
  EXPECT_EQ(waiting(), 0);
}

TEST_F(SilentStandby, ReadsThatCommitLeaveOneProcess) {
  lose_standby();
  session.answer_within(kShort);
  for (int i = 0; i < 3; ++i) {
    const Status done = session.read([](pqxx::nontransaction& tx) { tx.exec(kCommit); });
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code, ErrorCode::unavailable) << done.error().message;
  }
  EXPECT_EQ(waiting(), 1);
}

TEST_F(SilentStandby, AWaitThatWasCancelledInAReadMakesDoubt) {
  lose_standby();
  session.disconnect();  // else the read is repeated
  bool is_cancelled = false;
  std::thread cancels([&] { is_cancelled = ends_the_wait("pg_cancel_backend"); });
  const Status done = session.read([](pqxx::nontransaction& tx) { tx.exec(kCommit); });
  cancels.join();
  ASSERT_TRUE(is_cancelled);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::unavailable) << done.error().message;
  session.answer_within(kShort);
  expect_unavailable();
}

TEST_F(SilentStandby, AWaitThatWasCancelledBeforeAFailureMakesDoubt) {
  lose_standby();
  bool is_cancelled = false;
  std::thread cancels([&] { is_cancelled = ends_the_wait("pg_cancel_backend"); });
  const Status done = session.write([](pqxx::nontransaction& tx) {
    tx.exec("INSERT INTO public.noted VALUES (1)");
    throw Busy("after the commit");
  });
  cancels.join();
  ASSERT_TRUE(is_cancelled);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::conflict) << done.error().message;
  session.answer_within(kShort);
  expect_unavailable();
}

// While its counts cannot be committed there, its reads of types are what tells that the database answers.
TEST_F(SilentStandby, HousekeepingGoesOn) {
  PgClientStore store(session, kStandbyShards);
  const NewJob job = job_of_type_1("counted");
  ASSERT_TRUE(store.create({&job, 1}, CreateMode::each_by_itself));
  ASSERT_GT(number("SELECT count(*) FROM tocsin.job_count_delta"), 0);
  lose_standby();
  const ManualClock clock;
  Housekeeping housekeeping({{cluster->url(), "housekeeping", 1'000}, {}, 1}, clock, quiet_callbacks());
  const Status started = housekeeping.start();
  EXPECT_TRUE(started) << started.error().message;
  EXPECT_EQ(waiting(), 0);
  EXPECT_EQ(number("SELECT count(*) FROM tocsin.job_count_delta"), 0);
}

TEST_F(SilentStandby, ShardsOfADeadNodeMove) {
  const auto node = [](const std::string& name) {
    return NodeProcess(cluster->url(), {"--node-name", name, "--heartbeat-timeout", "2s"});
  };
  NodeProcess a = node("a"), b = node("b");
  const auto shards_of_a = [&] {
    const Reply reply = a.rest().get("/v1/shards");
    int n = 0;
    for (const Json& item : reply.body["items"]) n += item["node"] == "a";
    return n;
  };
  EXPECT_TRUE(eventually([&] { return shards_of_a() == kStandbyShards / 2; }));
  lose_standby();
  b.kill();
  EXPECT_TRUE(eventually([&] { return shards_of_a() == kStandbyShards; }));
}

// What was drawn and lost is not stored, so only the promotion itself tells that the sequence is behind.
TEST(LaggingStandby, IdsDrawnAfterItsPromotionLieBeyondTheLostOnes) {
  PairOfServers servers(kStandbyShards);
  put_type(servers.url());
  Session session({servers.url()});
  PgClientStore store(session, kStandbyShards);
  const std::vector<NewJob> jobs(500, job_of_type_1("order"));
  ASSERT_TRUE(store.create({jobs.data(), 1}, CreateMode::each_by_itself));
  servers.stop_standby();
  const auto lost = store.create(jobs, CreateMode::each_by_itself);
  ASSERT_TRUE(lost) << lost.error().message;
  std::set<JobId> ids;
  for (const CreateReply& reply : *lost) ids.insert(reply.job_id);
  servers.fail_over();
  Result<std::vector<CreateReply>> created = Error{};
  EXPECT_TRUE(eventually([&] { return (created = store.create(jobs, CreateMode::each_by_itself)).ok(); }));
  for (const CreateReply& reply : *created) EXPECT_GT(reply.job_id, *ids.rbegin());
  const std::vector<JobId> gone(ids.begin(), ids.end());
  const auto replies = store.cancel(gone, LockWait::none);
  ASSERT_TRUE(replies) << replies.error().message;
  for (const CancelReply& reply : *replies) EXPECT_EQ(reply.kind, CancelReply::Kind::not_found);
}

}  // namespace
}  // namespace tocsin

// Moves of shards that are killed, stopped or left alone in every state: nothing is lost, nothing is done twice, and
// the shard does not stand still.
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <optional>
#include <regex>

#include "integration/load.h"
#include "integration/moves.h"

namespace tocsin {
namespace {

bool says(const Process& mover, const std::string& pattern) {
  return std::regex_search(mover.out(), std::regex(pattern));
}

// Between two looks of the mover a fast machine copies several tables.
const std::string kSomeCopied = "copied [1-9]";

void kill(Process& mover) {
  mover.signal(SIGKILL);
  mover.wait();
}

// The one order of events in which a rollback used to wait for ever: a worker that copies a table is still there when
// the subscription's drop has begun, and makes a slot, which waits for that transaction, which waits for the slot.
TEST(MoveTrouble, ARollbackEndsWhileTheCopyCreatesItsSlot) {
  LogicalCluster server;
  execute(server.url(), "CREATE DATABASE second");
  const Two two{server.url(), url_of(server.url(), "second")};
  two.install();
  const auto mover = two.begin({"1", "--to", "b"});
  ASSERT_TRUE(eventually([&] { return says(*mover, "copied "); }));
  auto writer = std::make_unique<Open>(two.a, "SELECT txid_current()");
  ASSERT_TRUE(eventually([&] {
    return !text_of(two.a,
                    "SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'pg\\_%sync%' AND wait_event = "
                    "'transactionid'")
                .empty();
  })) << "a slot waits for the writer";
  std::optional<StoppedApply> apply(std::in_place, two.b);
  kill(*mover);
  const auto abort = two.begin({"1", "--abort"});
  ASSERT_TRUE(eventually([&] { return !text_of(two.b, "SELECT 1 FROM pg_subscription WHERE NOT subenabled").empty(); }))
      << "it is on its way";
  writer.reset();
  EXPECT_TRUE(eventually([&] {
    return text_of(
               two.a,
               "SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'pg\\_%sync%' AND wait_event = "
               "'transactionid' AND NOT EXISTS (SELECT FROM unnest(pg_blocking_pids(pid)) b JOIN pg_stat_activity a "
               "ON a.pid = b WHERE a.application_name LIKE 'tocsin move%')")
        .empty();
  })) << "the slots go on, or wait for the command";
  apply.reset();
  EXPECT_EQ(abort->wait(), 0) << abort->out() << abort->err();
  EXPECT_EQ(two.leftovers(), 0U);
}

// Begins to move shard 1 from the database `at` to the database `to`, and kills the command in this step.
void kill_in(const Two& two, const std::string& step, const std::string& at, const std::string& to) {
  const auto is_switching = [&] {
    return text_of(two.a, "SELECT 1 FROM tocsin.move WHERE state = 'switching'") == "1";
  };
  std::unique_ptr<Open> writer;  // in the way of the switch
  if (step == "switching")
    writer = std::make_unique<Open>(at == "a" ? two.a : two.b, "LOCK TABLE tocsin.job_live IN ROW EXCLUSIVE MODE");
  auto mover = two.begin({"1", "--to", to});
  if (step == "rolling back") {
    EXPECT_TRUE(eventually([&] { return says(*mover, kSomeCopied); }));
    kill(*mover);
    mover = two.begin({"1", "--abort"});
  }
  EXPECT_TRUE(
      eventually([&] { return !mover->is_running() || (step == "switching" ? is_switching() : says(*mover, step)); }));
  kill(*mover);
}

// Every state, ended by kill -9 and then resumed or rolled back, while jobs are created, cancelled and fired.
TEST(MoveTrouble, AMoveKilledInAnyStateIsResumedOrRolledBack) {
  LogicalCluster server;
  execute(server.url(), "CREATE DATABASE second");
  const Two two{server.url(), url_of(server.url(), "second")};
  two.install();
  const auto node = two.node();
  Rest& rest = node->rest();
  put(rest, "noop");
  std::set<std::string> pending, cancelled;
  int n = 0;
  const auto create_pending = [&] { return create(rest, "noop", key_of(1, ++n), 3'600'000); };
  for (int i = 0; i < 30; ++i) pending.insert(create_pending());
  Load load(node->port(), "noop", 2, 300);

  std::string at = "a";
  const std::vector<std::pair<std::string, bool>> cases = {
      {"from ", false},    {"copied ", false},  {kSomeCopied, true}, {"switching", false},
      {"switching", true}, {"switched", false}, {"deleted", false},  {"rolling back", true}};
  for (const auto& [step, is_abort] : cases) {
    const std::string what = step + (is_abort ? ", rolled back" : ", resumed");
    const std::string to = at == "a" ? "b" : "a";
    kill_in(two, step, at, to);
    const std::string id = create_pending(), off = *pending.begin();
    pending.erase(pending.begin());
    pending.insert(id);
    EXPECT_EQ(rest.post("/v1/jobs/" + off + "/cancel").status, 200) << what;
    cancelled.insert(off);
    const Ran after = is_abort ? two.abort(1) : two.move(1, to);
    EXPECT_EQ(after.exit_code, 0) << what << ": " << after.out << after.err;
    if (!is_abort) at = to;
    EXPECT_TRUE(eventually([&] { return database_of(rest, 1) == at; })) << what;
    EXPECT_EQ(two.leftovers(), 0U) << what;
    EXPECT_EQ(two.rows_of(at == "a" ? two.b : two.a, 1), 0U) << what;
    for (const std::string& each : pending) EXPECT_EQ(rest.get("/v1/jobs/" + each).body["status"], "pending") << what;
  }

  load.stop();
  EXPECT_TRUE(eventually([&] {
    return two.both("SELECT job_id FROM tocsin.job WHERE status IN ('pending', 'running')").size() == pending.size();
  }));
  const auto ids_of = [&](const std::string& status) {
    const auto all = two.both("SELECT job_id FROM tocsin.job WHERE attempts < 2 AND status = '" + status + "'");
    std::set<std::string> ids(all.begin(), all.end());
    EXPECT_EQ(ids.size(), all.size()) << status << " twice";
    return ids;
  };
  EXPECT_EQ(ids_of("done"), load.ids());
  EXPECT_EQ(ids_of("pending"), pending);
  EXPECT_EQ(ids_of("cancelled"), cancelled);
  const Json totals = rest.get("/v1/stats").body["totals"];
  EXPECT_EQ(totals["done"], load.ids().size());
  EXPECT_EQ(totals["pending"], pending.size());
  EXPECT_EQ(totals["cancelled"], cancelled.size());
}

// The map is flipped for good, and the target opens the shard afterwards: what keeps it from that must come before.
TEST(MoveTrouble, ALongReadAtTheTargetDelaysTheMoveOnly) {
  LogicalCluster a, b;
  const Two two{a.url(), b.url()};
  two.install();
  const auto node = two.node();
  put(node->rest(), "noop");
  auto reader = std::make_unique<Open>(two.b, "SELECT count(*) FROM tocsin.job");
  const auto mover = two.begin({"0", "--to", "b"});
  ASSERT_TRUE(eventually([&] { return says(*mover, "a transaction in b stands in the way"); })) << mover->err();
  EXPECT_EQ(database_of(node->rest(), 0), "a");
  const std::string id = create(node->rest(), "noop", key_of(0, 1), 1);
  EXPECT_TRUE(eventually([&] { return node->rest().get("/v1/jobs/" + id).body["status"] == "done"; }));
  reader.reset();
  EXPECT_EQ(mover->wait(), 0) << mover->err();
  EXPECT_EQ(database_of(node->rest(), 0), "b");
  EXPECT_EQ(two.leftovers(), 0U);
}

// As after a failover of the source, which keeps all but the slot.
TEST(MoveTrouble, ACopyWhoseSlotIsLostBeginsAnew) {
  LogicalCluster a, b;
  const Two two{a.url(), b.url()};
  two.install();
  const auto node = two.node();
  put(node->rest(), "noop");
  create(node->rest(), "noop", key_of(0, 1), 3'600'000);
  auto reader = std::make_unique<Open>(two.b, "SELECT count(*) FROM tocsin.job");
  const auto mover = two.begin({"0", "--to", "b"});
  ASSERT_TRUE(eventually([&] { return says(*mover, "a transaction in b stands in the way"); })) << mover->err();
  kill(*mover);
  ASSERT_TRUE(eventually([&] {
    text_of(two.a, "SELECT count(pg_terminate_backend(active_pid)) FROM pg_replication_slots WHERE active");
    text_of(two.a,
            "SELECT count(*) FROM (SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots"
            " WHERE NOT active) s");
    return text_of(two.a, "SELECT count(*) FROM pg_replication_slots") == "0";
  }));
  create(node->rest(), "noop", key_of(0, 2), 3'600'000);
  reader.reset();
  const Ran again = two.move(0, "b");
  EXPECT_EQ(again.exit_code, 0) << again.out << again.err;
  EXPECT_EQ(two.rows_of(two.b, 0), 2U) << "the second one, too, which a new slot would not have";
  EXPECT_EQ(two.leftovers(), 0U);
}

TEST(MoveTrouble, AFrozenShardWhoseDriverDiedThawsByItself) {
  LogicalCluster a, b;
  const Two two{a.url(), b.url()};
  two.install();
  const auto node = two.node();
  Rest& rest = node->rest();
  put(rest, "noop");
  const std::string job = create(rest, "noop", key_of(0, 1), 3'600'000);
  auto writer = std::make_unique<Open>(two.a, "LOCK TABLE tocsin.job_live IN ROW EXCLUSIVE MODE");
  const auto mover = two.begin({"0", "--to", "b", "--longest-pause", "30s"});
  ASSERT_TRUE(eventually([&] { return says(*mover, "stands in the way"); })) << mover->err();
  Json shard;
  EXPECT_TRUE(eventually([&] { return (shard = rest.get("/v1/shards").body["items"][0]).contains("move"); }));
  EXPECT_EQ(shard["move"]["to"], "b");
  const Ran listed = run_tocsin({"shards", "--url", "http://127.0.0.1:" + std::to_string(node->port())});
  EXPECT_NE(listed.out.find(" to b"), std::string::npos) << listed.out;
  {
    // What is to be applied waits; then the writer ends, the shard is write-frozen, and the target does not catch up.
    const StoppedApply apply(two.b);
    create(rest, "noop", key_of(0, 2), 3'600'000);
    writer.reset();
    ASSERT_TRUE(
        eventually([&] { return text_of(two.a, "SELECT 1 FROM pg_trigger WHERE tgname = 'keep_still_0'") == "1"; }));
    kill(*mover);
    const auto began = std::chrono::steady_clock::now();
    EXPECT_TRUE(eventually([&] {
      return rest.post("/v1/jobs", {{"biz_type", "noop"}, {"biz_id", key_of(0, 3)}, {"delay_ms", 3'600'000}}).status ==
             201;
    }));
    std::printf(
        "without its driver the shard stood still for %lld ms\n",
        static_cast<long long>(
            std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - began).count()));
    EXPECT_EQ(database_of(rest, 0), "a");
    EXPECT_EQ(rest.post("/v1/jobs/" + job + "/cancel").status, 200);
  }
  const Ran again = two.move(0, "b");
  EXPECT_EQ(again.exit_code, 0) << again.out << again.err;
  EXPECT_EQ(two.rows_of(two.b, 0), 3U);
  EXPECT_EQ(two.leftovers(), 0U);
}

// Stopped, not dead: what it does when it wakes must change nothing any more.
TEST(MoveTrouble, ADriverThatWakesAfterTheThawTakesTheMoveAgain) {
  LogicalCluster a, b;
  const Two two{a.url(), b.url()};
  two.install();
  const auto node = two.node();
  Rest& rest = node->rest();
  put(rest, "noop");
  auto writer = std::make_unique<Open>(two.a, "LOCK TABLE tocsin.job_live IN ROW EXCLUSIVE MODE");
  const auto mover = two.begin({"0", "--to", "b", "--longest-pause", "30s"});
  ASSERT_TRUE(eventually([&] { return says(*mover, "stands in the way"); })) << mover->err();
  {
    const StoppedApply apply(two.b);
    create(rest, "noop", key_of(0, 2), 3'600'000);
    writer.reset();
    ASSERT_TRUE(
        eventually([&] { return text_of(two.a, "SELECT 1 FROM pg_trigger WHERE tgname = 'keep_still_0'") == "1"; }));
    mover->signal(SIGSTOP);
    EXPECT_TRUE(
        eventually([&] { return text_of(two.a, "SELECT is_rescued AND thaw_at IS NULL FROM tocsin.move") == "t"; }));
  }
  create(rest, "noop", key_of(0, 3), 3'600'000);
  mover->signal(SIGCONT);
  EXPECT_EQ(mover->wait(), 0) << mover->out() << mover->err();
  EXPECT_EQ(two.rows_of(two.b, 0), 2U);
  EXPECT_EQ(two.rows_of(two.a, 0), 0U);
  EXPECT_EQ(two.leftovers(), 0U);
}

TEST(MoveTrouble, ADatabaseThatCrashesDelaysTheMoveOnly) {
  LogicalCluster control, b, c;
  const std::vector<std::string> more = {"--database", "b=" + b.url(), "--database", "c=" + c.url()};
  std::vector<std::string> migrate = {"migrate", "--shards", "9", "--database", "a=" + control.url()};
  migrate.insert(migrate.end(), more.begin(), more.end());
  ASSERT_EQ(run_tocsin(migrate).exit_code, 0);
  const NodeProcess node("a=" + control.url(), more);
  Rest rest(node.port());
  put(rest, "noop");
  std::set<std::string> ids;
  for (int i = 0; ids.size() < 40; ++i)
    if (const std::string key = "k-" + std::to_string(i); shard_of(key, 9) == 4)
      ids.insert(create(rest, "noop", key, 3'600'000));
  const auto command = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {required_env("TOCSIN_BINARY"), "shard", "move", "4"});
    words.insert(words.end(), {"--database", "a=" + control.url()});
    words.insert(words.end(), more.begin(), more.end());
    return std::make_unique<Process>(words);
  };
  const auto expect_all_at = [&](const std::string& url, const std::string& what) {
    pqxx::connection connection(url);
    std::set<std::string> found;
    for (const auto& row : pqxx::nontransaction(connection).exec("SELECT job_id FROM tocsin.job_live WHERE shard = 4"))
      found.insert(row[0].c_str());
    EXPECT_EQ(found, ids) << what;
    EXPECT_EQ(text_of(control.url(), "SELECT count(*) FROM tocsin.move"), "0") << what;
  };
  bool is_at_b = true;
  for (const auto& [name, victim] : {std::pair<std::string, LogicalCluster*>("the source", &b),
                                     {"the source", &c},
                                     {"the control database", &control}}) {
    const auto mover = command({"--to", is_at_b ? "c" : "b"});
    ASSERT_TRUE(eventually([&] { return says(*mover, kSomeCopied) || !mover->is_running(); }));
    victim->crash();
    victim->start();
    EXPECT_EQ(mover->wait(std::chrono::seconds(180)), 0) << name << ": " << mover->out() << mover->err();
    is_at_b = !is_at_b;
    expect_all_at(is_at_b ? b.url() : c.url(), name + " died");
  }
  // The target; and a command that dies with it and is rolled back.
  LogicalCluster& source = is_at_b ? b : c;
  LogicalCluster& target = is_at_b ? c : b;
  // The writer holds the switch: the move is still under way when the target dies.
  auto writer = std::make_unique<Open>(source.url(), "LOCK TABLE tocsin.job_live IN ROW EXCLUSIVE MODE");
  const auto mover = command({"--to", is_at_b ? "c" : "b"});
  ASSERT_TRUE(eventually([&] { return says(*mover, kSomeCopied) || !mover->is_running(); }));
  target.crash();
  kill(*mover);
  writer.reset();
  target.start();
  const auto abort = command({"--abort"});
  EXPECT_EQ(abort->wait(std::chrono::seconds(120)), 0) << abort->out() << abort->err();
  expect_all_at(source.url(), "rolled back after the target died");
  EXPECT_EQ(text_of(target.url(), "SELECT count(*) FROM tocsin.job_live WHERE shard = 4"), "0");
}

TEST(MoveTrouble, IsRefusedWhileANodeWasNotGivenTheTarget) {
  LogicalCluster server;
  execute(server.url(), "CREATE DATABASE second");
  const Two two{server.url(), url_of(server.url(), "second")};
  ASSERT_EQ(run_tocsin({"migrate", "--database", "a=" + two.a, "--shards", "4"}).exit_code, 0);
  ASSERT_EQ(run_tocsin(two.command({"migrate"})).exit_code, 0);
  auto lacking = std::make_unique<NodeProcess>("a=" + two.a, std::vector<std::string>{"--node-name", "poor"});
  const NodeProcess having("a=" + two.a, std::vector<std::string>{"--node-name", "rich", "--database", "b=" + two.b});
  const Ran refused = two.move(0, "b");
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_NE(refused.err.find("database b (poor)"), std::string::npos) << refused.err;
  EXPECT_EQ(two.leftovers(), 0U) << "nothing has begun";
  EXPECT_EQ(lacking->stop(), 0);
  const Ran moved = two.move(0, "b");
  EXPECT_EQ(moved.exit_code, 0) << moved.out << moved.err;
}

// A failover of the control database that lost the last commits.
TEST(MoveTrouble, AMoveUnknownToTheControlDatabaseIsResumedOrRolledBack) {
  LogicalCluster server;
  execute(server.url(), "CREATE DATABASE second");
  const Two two{server.url(), url_of(server.url(), "second")};
  two.install();
  const auto node = two.node();
  put(node->rest(), "noop");
  create(node->rest(), "noop", key_of(1, 1), 3'600'000);
  for (const bool is_abort : {true, false}) {
    const auto mover = two.begin({"1", "--to", "b"});
    ASSERT_TRUE(eventually([&] { return says(*mover, kSomeCopied); })) << mover->err();
    kill(*mover);
    execute(two.a, "DELETE FROM tocsin.move");
    execute(two.b, "UPDATE tocsin.move SET driver = 5");
    const Ran after = is_abort ? two.abort(1) : two.move(1, "b");
    EXPECT_EQ(after.exit_code, 0) << after.out << after.err;
    EXPECT_EQ(two.leftovers(), 0U);
    EXPECT_EQ(two.rows_of(is_abort ? two.a : two.b, 1), 1U);
    EXPECT_EQ(two.rows_of(is_abort ? two.b : two.a, 1), 0U);
  }
}

TEST(MoveTrouble, ARefusedMoveNamesTheReasonAndLeavesNothing) {
  LogicalCluster a, b;
  const Two two{a.url(), b.url()};
  two.install();
  const auto move = [&](const std::string& source_url) {
    return run_tocsin(two.command({"shard", "move", "1", "--to", "b", "--source-url", source_url}));
  };
  const Ran nowhere = move("postgresql://postgres@127.0.0.1:1/nowhere");
  EXPECT_EQ(nowhere.exit_code, 1);
  EXPECT_NE(nowhere.err.find("does not reach the source"), std::string::npos) << nowhere.err;
  EXPECT_NE(nowhere.err.find("--source-url"), std::string::npos) << nowhere.err;
  EXPECT_EQ(nowhere.out.find("trying again"), std::string::npos) << nowhere.out;
  EXPECT_EQ(two.leftovers(), 0U);
  const Ran elsewhere = move(two.b);
  EXPECT_EQ(elsewhere.exit_code, 1);
  EXPECT_NE(elsewhere.err.find("another database"), std::string::npos) << elsewhere.err;
  EXPECT_EQ(two.leftovers(), 0U);
  EXPECT_EQ(two.move(1, "b").exit_code, 0);
}

// Two databases of a server that asks the role of movers for its password, as security.md wants them.
class MoverRole : public ::testing::Test {
 protected:
  void SetUp() override {
    execute(server_.url(), "CREATE DATABASE second");
    owner_.install();
    {
      const auto node = owner_.node();
      put(node->rest(), "noop");
      create(node->rest(), "noop", key_of(1, 1), 3'600'000);
    }
    const std::filesystem::path folder = std::filesystem::path(required_env("TOCSIN_POSTGRES_SH")).parent_path();
    for (const std::string& url : {owner_.a, owner_.b}) {
      Process psql(
          {"/usr/bin/env", "psql", "-qX", "-v", "mover=small_mover", "-f", (folder / "roles.sql").string(), url});
      ASSERT_EQ(psql.wait(), 0) << psql.err();
    }
    execute(owner_.a, "ALTER ROLE small_mover LOGIN PASSWORD 'sesame'");
    // As its administrator would: both files belong to the server's user.
    const std::string folder_of_server = text_of(owner_.a, "SHOW data_directory");
    passfile_ = folder_of_server + "/mover.pass";
    execute(owner_.a, "COPY (VALUES ('*:*:*:small_mover:sesame')) TO PROGRAM 'umask 077; cat > " + passfile_ + "'");
    execute(owner_.a,
            "COPY (VALUES ('host all small_mover all scram-sha-256'), ('host all all all trust'), ('local all all "
            "trust')) TO PROGRAM 'cat > " +
                folder_of_server + "/pg_hba.conf'");
    execute(owner_.a, "SELECT pg_reload_conf()");
    ASSERT_TRUE(eventually([&] { return is_refused(as_mover(owner_.a, "small_mover")); }));
  }

  static std::string as_mover(std::string url, const std::string& login) {
    const auto user = url.find("://") + 3;
    return url.replace(user, url.find('@') - user, login);
  }
  static bool is_refused(const std::string& url) {
    try {
      pqxx::connection connection(url);
    } catch (const pqxx::broken_connection&) {
      return true;
    }
    return false;
  }
  // What the target's server connects with; the move must not end before it was read.
  std::string subscription() const {
    std::string found;
    EXPECT_TRUE(eventually([&] {
      found = text_of(owner_.b, "SELECT subconninfo FROM pg_subscription");
      return !found.empty();
    }));
    return found;
  }

  LogicalCluster server_;
  const Two owner_{server_.url(), url_of(server_.url(), "second")};
  const Two two_{as_mover(owner_.a, "small_mover:sesame"), as_mover(owner_.b, "small_mover:sesame")};
  std::string passfile_;
};

TEST_F(MoverRole, ThePasswordOfTheSourceStaysOutOfTheCatalog) {
  auto writer = std::make_unique<Open>(owner_.a, "LOCK TABLE tocsin.job_live IN ROW EXCLUSIVE MODE");
  const auto mover = two_.begin({"1", "--to", "b", "--source-passfile", passfile_});
  const std::string stored = subscription();
  EXPECT_EQ(stored.find("sesame"), std::string::npos) << stored;
  EXPECT_NE(stored.find(passfile_), std::string::npos) << stored;
  EXPECT_TRUE(eventually([&] { return says(*mover, kSomeCopied); })) << "the server reads the file: " << mover->err();
  EXPECT_FALSE(says(*mover, "password"));
  writer.reset();
  EXPECT_EQ(mover->wait(std::chrono::seconds(60)), 0) << mover->out() << mover->err();
  EXPECT_EQ(owner_.rows_of(owner_.b, 1), 1U);
  EXPECT_EQ(owner_.leftovers(), 0U);
}

TEST_F(MoverRole, APasswordThatIsInTheCatalogIsNamed) {
  auto writer = std::make_unique<Open>(owner_.a, "LOCK TABLE tocsin.job_live IN ROW EXCLUSIVE MODE");
  const auto mover = two_.begin({"1", "--to", "b"});
  EXPECT_NE(subscription().find("sesame"), std::string::npos);
  EXPECT_TRUE(says(*mover, "the password of a is in the catalog of b until the move ends")) << mover->out();
  EXPECT_FALSE(says(*mover, "sesame"));
  kill(*mover);
  writer.reset();
  EXPECT_EQ(two_.abort(1).exit_code, 0);
  EXPECT_EQ(owner_.leftovers(), 0U);
}

TEST(MoveTrouble, AServerWithoutAFreeWorkerIsNamedWithItsSetting) {
  LogicalCluster server;
  execute(server.url(), "CREATE DATABASE second");
  const Two two{server.url(), url_of(server.url(), "second")};
  two.install();
  execute(server.url(), "ALTER SYSTEM SET max_logical_replication_workers = 1");
  server.crash();
  server.start();
  const auto mover = two.begin({"1", "--to", "b"});
  EXPECT_TRUE(eventually([&] { return says(*mover, "max_logical_replication_workers is 1"); })) << mover->out();
  EXPECT_TRUE(says(*mover, "tocsin_move_1"));
  const auto moves = [&] { return nlohmann::json::parse(run_tocsin(two.command({"shard", "moves", "--json"})).out); };
  EXPECT_EQ(moves(), nlohmann::json::parse(R"({"items":[{"shard":1,"state":"copying","from":"a","to":"b"}]})"));
  kill(*mover);
  EXPECT_EQ(two.abort(1).exit_code, 0);
  EXPECT_EQ(two.leftovers(), 0U);
  EXPECT_EQ(moves(), nlohmann::json::parse(R"({"items":[]})"));
}

// PostgreSQL starts a worker that fails anew, for ever.
TEST(MoveTrouble, AWorkerThatKeepsFailingIsNamedAndEndsTheCommand) {
  LogicalCluster server;
  execute(server.url(), "CREATE DATABASE second");
  const Two two{server.url(), url_of(server.url(), "second")};
  two.install();
  {
    const auto node = two.node();
    put(node->rest(), "noop");
    create(node->rest(), "noop", key_of(1, 1), 3'600'000);
  }
  execute(two.b, "ALTER TABLE tocsin.job_live_0001 ADD CONSTRAINT nothing CHECK (false) NOT VALID");
  const auto impatient = two.begin({"1", "--to", "b", "--patience", "1s"});
  EXPECT_EQ(impatient->wait(std::chrono::seconds(60)), 1) << impatient->out();
  EXPECT_NE(impatient->err().find("fail in b repeatedly"), std::string::npos) << impatient->err();

  const auto mover = two.begin({"1", "--to", "b"});
  EXPECT_TRUE(eventually([&] { return says(*mover, "a worker of the subscription fails in b"); })) << mover->out();
  execute(two.b, "ALTER TABLE tocsin.job_live_0001 DROP CONSTRAINT nothing");
  EXPECT_EQ(mover->wait(std::chrono::seconds(60)), 0) << mover->out() << mover->err();
  EXPECT_EQ(two.rows_of(two.b, 1), 1U);
  EXPECT_EQ(two.leftovers(), 0U);
}

}  // namespace
}  // namespace tocsin

// Several nodes on one database: who scans what, and who takes over from whom.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <map>
#include <pqxx/pqxx>
#include <set>

#include "support/node_process.h"
#include "support/test_database.h"
#include "support/webhook_receiver.h"

namespace tocsin {
namespace {

constexpr int kClusterShards = 8;
using Owners = std::map<int, std::string>;  // name of the owning node by shard

class Cluster : public testing::Test {
 protected:
  NodeProcess& start(const std::string& name, const std::string& timeout = "2s",
                     const std::vector<std::string>& further = {}) {
    std::vector<std::string> options{"--node-name", name, "--heartbeat-timeout", timeout};
    options.insert(options.end(), further.begin(), further.end());
    nodes[name] = std::make_unique<NodeProcess>(nodes_url, options);
    return *nodes[name];
  }
  NodeProcess& node(const std::string& name) { return *nodes.at(name); }

  static Owners owners(NodeProcess& asked) {
    Owners owners;
    const Reply reply = asked.rest().get("/v1/shards");
    EXPECT_EQ(reply.status, 200) << reply.text;
    for (const Json& item : reply.body["items"])
      if (!item["node"].is_null()) owners[item["shard"].get<int>()] = item["node"].get<std::string>();
    return owners;
  }
  static std::map<std::string, int> loads(const Owners& owners) {
    std::map<std::string, int> loads;
    for (const auto& [shard, name] : owners) ++loads[name];
    return loads;
  }
  // Exactly the running nodes own all shards in equal parts, and all of them agree.
  bool are_shared() {
    std::set<Owners> opinions;
    for (const auto& [name, each] : nodes) opinions.insert(owners(*each));
    if (opinions.size() != 1 || opinions.begin()->size() != kClusterShards) return false;
    const auto load = loads(*opinions.begin());
    if (load.size() != nodes.size()) return false;
    for (const auto& [name, n] : load)
      if (!nodes.contains(name) || n < kClusterShards / static_cast<int>(nodes.size())) return false;
    return true;
  }

  void put_noop() {
    ASSERT_LT(nodes.begin()->second->rest().put("/v1/types/noop", {{"handler", {{"kind", "noop"}}}}).status, 300);
  }
  // Jobs in every shard, due in the next time; how many.
  int create_jobs(NodeProcess& accepting, int n, int delay_ms, int spread_ms, const std::string& type = "noop") {
    Json jobs = Json::array();
    for (int i = 0; i < n; ++i) {
      jobs.push_back(
          {{"biz_type", type}, {"biz_id", "b-" + std::to_string(++last_)}, {"delay_ms", delay_ms + i * spread_ms / n}});
    }
    const Reply reply = accepting.rest().post("/v1/jobs/batch", {{"jobs", jobs}});
    EXPECT_EQ(reply.status, 201) << reply.text;
    return n;
  }
  int last() const { return last_; }
  bool all_fired_once(int n) {
    if (!eventually([&] { return database.number("SELECT count(*) FROM tocsin.job WHERE status = 'done'") == n; }))
      return false;
    return database.number("SELECT count(*) FROM tocsin.job WHERE attempts <> 1") == 0 &&
           database.number("SELECT count(*) FROM tocsin.job") == n &&
           database.number("SELECT n FROM tocsin.job_stats WHERE biz_type = 'noop' AND status = 'done'") == n;
  }

  TestDatabase database{kClusterShards};
  std::string nodes_url = database.url();  // where they are started
  std::map<std::string, std::unique_ptr<NodeProcess>> nodes;

 private:
  int last_ = 0;
};

TEST_F(Cluster, NodesShareTheShardsAndTheOwnerFiresEachJob) {
  for (const char* name : {"a", "b", "c"}) start(name);
  ASSERT_TRUE(eventually([&] { return are_shared(); }));
  put_noop();
  const Reply listed = node("b").rest().get("/v1/nodes");
  ASSERT_EQ(listed.body["items"].size(), 3U) << listed.text;
  for (const Json& item : listed.body["items"]) EXPECT_EQ(item["state"], "active") << listed.text;

  int created = 0;
  for (const char* name : {"a", "b", "c"}) created += create_jobs(node(name), 40, 0, 300);
  EXPECT_TRUE(all_fired_once(created));
  const Owners by_shard = owners(node("a"));
  for (const auto& row : database.query("SELECT shard, node FROM tocsin.job"))
    EXPECT_EQ(row[1].as<std::string>(), by_shard.at(row[0].as<int>()));
  ASSERT_TRUE(eventually([&] { return are_shared(); })) << "and nothing has moved";
  EXPECT_EQ(owners(node("a")), by_shard);
}

TEST_F(Cluster, AConsumerAtOneNodeGetsTheJobsOfEveryShard) {
  for (const char* name : {"a", "b"}) start(name);
  ASSERT_TRUE(eventually([&] { return are_shared(); }));
  ASSERT_LT(node("a").rest().put("/v1/types/ticket", {{"handler", {{"kind", "pull"}}}}).status, 300);
  Json jobs = Json::array();
  for (int i = 0; i < 40; ++i)
    jobs.push_back({{"biz_type", "ticket"}, {"biz_id", "t-" + std::to_string(i)}, {"delay_ms", 0}});
  ASSERT_EQ(node("b").rest().post("/v1/jobs/batch", {{"jobs", jobs}}).status, 201);
  std::set<std::string> leased;
  EXPECT_TRUE(eventually([&] {
    const Reply reply = node("a").rest().post("/v1/types/ticket/lease", {{"max", 100}, {"wait_ms", 200}});
    for (const Json& item : reply.body["items"]) EXPECT_TRUE(leased.insert(item["job_id"].get<std::string>()).second);
    return leased.size() == 40;
  })) << leased.size();
}

TEST_F(Cluster, AJobCreatedAtAnotherNodeIsHintedToItsOwner) {
  class Ears final : public pqxx::notification_receiver {
   public:
    explicit Ears(pqxx::connection& connection) : pqxx::notification_receiver(connection, "tocsin_due") {}
    void operator()(const std::string& payload, int) override { heard += payload + ';'; }
    std::string heard;
  };
  for (const char* name : {"a", "b"}) start(name);
  ASSERT_TRUE(eventually([&] { return are_shared(); }));
  put_noop();
  pqxx::connection connection(database.url());
  Ears ears(connection);
  std::set<std::string> foreign;
  const Owners by_shard = owners(node("a"));
  for (int i = 0; i < 16; ++i) {
    const Reply reply = node("a").rest().post(
        "/v1/jobs", {{"biz_type", "noop"}, {"biz_id", "k-" + std::to_string(i)}, {"delay_ms", 3000}});
    ASSERT_EQ(reply.status, 201) << reply.text;
    const auto id = reply.body["job_id"].get<std::string>();
    if (by_shard.at(reply.body["shard"].get<int>()) == "b") foreign.insert(id);
  }
  ASSERT_FALSE(foreign.empty());
  EXPECT_TRUE(eventually([&] {
    connection.get_notifs();
    std::size_t n = 0;
    for (const std::string& id : foreign) n += ears.heard.find(id + ' ') != std::string::npos;
    return n == foreign.size();
  })) << ears.heard;
  EXPECT_TRUE(all_fired_once(16));
}

TEST_F(Cluster, ATerminatedNodeHandsOverAndAllItsJobsFire) {
  for (const char* name : {"a", "b", "c"}) start(name);
  ASSERT_TRUE(eventually([&] { return are_shared(); }));
  put_noop();
  const int n = create_jobs(node("a"), 300, 0, 4000);
  EXPECT_EQ(node("b").stop(), 0);
  nodes.erase("b");
  EXPECT_TRUE(eventually([&] { return are_shared(); }));
  EXPECT_TRUE(all_fired_once(n));
  EXPECT_EQ(node("a").rest().get("/v1/nodes").body["items"].size(), 2U) << "it left";
}

TEST_F(Cluster, AKilledNodeIsReplacedAndAllItsJobsFireOnce) {
  for (const char* name : {"a", "b", "c"}) start(name);
  ASSERT_TRUE(eventually([&] { return are_shared(); }));
  put_noop();
  const int n = create_jobs(node("a"), 300, 0, 6000);
  node("b").kill();
  nodes.erase("b");
  EXPECT_TRUE(eventually([&] { return are_shared(); }));
  EXPECT_TRUE(all_fired_once(n));
}

// Another transaction holds the shard map, so the other node cannot take the shards of the one that ends.
TEST_F(Cluster, ANodeThatEndsFiresItsJobsUntilItsShardsAreTaken) {
  for (const char* name : {"a", "b"}) start(name, "10s");
  ASSERT_TRUE(eventually([&] { return are_shared(); }));
  put_noop();
  pqxx::connection other(database.url());
  pqxx::work holder(other);
  holder.exec1("SELECT version FROM tocsin.shard_map FOR UPDATE");
  const int n = create_jobs(node("a"), 80, 500, 1);
  node("b").process().signal(SIGTERM);
  EXPECT_TRUE(all_fired_once(n));
  EXPECT_TRUE(node("b").process().is_running());
  holder.abort();
  EXPECT_EQ(node("b").process().wait(), 0);
  nodes.erase("b");
  EXPECT_TRUE(eventually([&] { return are_shared(); }));
}

// All nodes of a cluster end together: none waits for another to take its shards.
TEST_F(Cluster, NodesThatEndTogetherWaitForNoSuccessor) {
  for (const char* name : {"a", "b"}) start(name, "5s");
  ASSERT_TRUE(eventually([&] { return are_shared(); }));
  for (const char* name : {"a", "b"}) node(name).process().signal(SIGTERM);
  for (const char* name : {"a", "b"}) EXPECT_EQ(node(name).process().wait(), 0);
  const std::string logs = node("a").log() + node("b").log();
  EXPECT_EQ(logs.find("no other node has taken"), std::string::npos) << logs;
}

// With default settings: how late jobs of a node's shards are that fall due around its end.
TEST_F(Cluster, LatenessIsBoundedForJobsOfAnEndingNode) {
  start("a", "5s");
  put_noop();
  int n = 0;
  for (const int signal : {SIGKILL, SIGTERM, SIGKILL}) {
    start("b", "5s");
    ASSERT_TRUE(eventually([&] { return are_shared(); }));
    const int first = last() + 1;
    n += create_jobs(node("a"), 400, 300, 4000);
    node("b").process().signal(signal);
    node("b").process().wait();
    nodes.erase("b");
    EXPECT_TRUE(all_fired_once(n));
    const auto late = database.query(
        "SELECT round(extract(epoch FROM max(started_at - action_time)) * 1000) FROM tocsin.job WHERE "
        "substr(biz_id, 3)::integer >= " +
        std::to_string(first));
    std::printf("after %s a job of the node's shards is at most %s ms late\n",
                signal == SIGKILL ? "kill -9" : "SIGTERM", late[0][0].c_str());
  }
}

TEST_F(Cluster, AFrozenNodeIsReplacedAndComesBack) {
  for (const char* name : {"a", "b"}) start(name);
  ASSERT_TRUE(eventually([&] { return are_shared(); }));
  put_noop();
  node("b").process().signal(SIGSTOP);
  EXPECT_TRUE(eventually([&] { return loads(owners(node("a")))["a"] == kClusterShards; }));
  const int n = create_jobs(node("a"), 100, 0, 500);
  EXPECT_TRUE(all_fired_once(n));
  const Reply listed = node("a").rest().get("/v1/nodes");
  EXPECT_NE(listed.text.find("lost"), std::string::npos) << listed.text;
  node("b").process().signal(SIGCONT);
  EXPECT_TRUE(eventually([&] { return are_shared(); }));
}

// A slow endpoint that holds all its connections of all nodes for as long as the test takes.
class ClusterWithASlowEndpoint : public Cluster {
 protected:
  static constexpr int kConnections = 8, kJobs = 40;

  ~ClusterWithASlowEndpoint() override {
    slow.release();
    nodes.clear();  // before the receivers end: a connection that a node keeps open would hold them up
  }
  void start_all(const std::vector<std::string>& names) {
    slow.hold();
    for (const std::string& name : names)
      start(name, "5s", {"--webhook-connections", std::to_string(kConnections), "--drain-timeout", "100ms"});
    ASSERT_TRUE(eventually([&] { return are_shared(); }));
    for (const auto& [type, receiver] : {std::pair("slow", &slow), std::pair("healthy", &healthy)}) {
      Json handler = receiver->handler();
      handler["timeout_ms"] = 120'000;
      const Json body = {{"handler", handler}, {"ttr_ms", 180'000}};
      ASSERT_LT(node("a").rest().put("/v1/types/" + std::string(type), body).status, 300);
    }
    create_jobs(node("a"), 1000, 0, 1, "slow");
    ASSERT_TRUE(eventually([&] { return slow.count() == connections(); }));
  }
  std::size_t connections() const { return nodes.size() * kConnections; }
  std::int64_t number(const std::string& sql) const {
    pqxx::connection connection(nodes_url);
    return pqxx::nontransaction(connection).exec1(sql)[0].as<std::int64_t>();
  }
  std::int64_t done() const {
    return number("SELECT count(*) FROM tocsin.job WHERE biz_type = 'healthy' AND status = 'done'");
  }
  // So many in all.
  bool are_done(int jobs) const {
    return eventually([&] { return done() == jobs; });
  }
  void expect_nothing_was_claimed_that_cannot_start() {
    EXPECT_EQ(slow.count(), connections());
    EXPECT_EQ(number("SELECT count(*) FROM tocsin.job WHERE biz_type = 'slow' AND status = 'running'"),
              static_cast<std::int64_t>(connections()));
  }
  // Jobs of another type start on all nodes all the same: quiet, without notifications, and while one of the nodes
  // stands still and after that.
  void expect_it_holds_up_no_other_type() {
    create_jobs(node("a"), kJobs, 0, 1, "healthy");
    EXPECT_TRUE(are_done(kJobs)) << "quiet";
    EXPECT_GT(number("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = "
                     "current_database() AND application_name = 'tocsin listener'"),
              0);
    create_jobs(node("a"), kJobs, 0, 1, "healthy");
    EXPECT_TRUE(are_done(2 * kJobs)) << "without notifications";
    node("b").process().signal(SIGSTOP);
    create_jobs(node("a"), kJobs, 0, 1, "healthy");
    EXPECT_TRUE(eventually([&] { return done() > 2 * kJobs; })) << "those of the other nodes";
    node("b").process().signal(SIGCONT);
    EXPECT_TRUE(are_done(3 * kJobs)) << "all";
    EXPECT_EQ(number("SELECT count(DISTINCT node) FROM tocsin.job WHERE biz_type = 'healthy'"),
              static_cast<std::int64_t>(nodes.size()));
    expect_nothing_was_claimed_that_cannot_start();
  }

  WebhookReceiver slow, healthy;
};

TEST_F(ClusterWithASlowEndpoint, OfTwoNodesDelaysNoOtherType) {
  start_all({"a", "b"});
  expect_it_holds_up_no_other_type();
}

TEST_F(ClusterWithASlowEndpoint, OfFourNodesDelaysNoOtherType) {
  start_all({"a", "b", "c", "d"});
  expect_it_holds_up_no_other_type();
}

TEST_F(ClusterWithASlowEndpoint, DelaysNoOtherTypeAfterAFailover) {
  PairOfServers servers(kClusterShards);
  nodes_url = servers.url();
  start_all({"a", "b"});
  create_jobs(node("a"), kJobs, 0, 1, "healthy");
  EXPECT_TRUE(are_done(kJobs));
  servers.fail_over();
  Json jobs = Json::array();
  for (int i = 0; i < kJobs; ++i)
    jobs.push_back({{"biz_type", "healthy"}, {"biz_id", "after-" + std::to_string(i)}, {"delay_ms", 0}});
  EXPECT_TRUE(eventually([&] {
    return node("a").rest().post("/v1/jobs/batch", {{"jobs", jobs}}).status == 201;
  })) << "when it has found the new primary";
  EXPECT_TRUE(are_done(2 * kJobs));
  EXPECT_EQ(number("SELECT count(DISTINCT node) FROM tocsin.job WHERE biz_id LIKE 'after-%'"), 2);
  expect_nothing_was_claimed_that_cannot_start();
  slow.release();
  nodes.clear();  // before their servers end
}

TEST_F(Cluster, ARestartUnderTheOldNameWorksAtOnce) {
  start("a"), start("b");
  ASSERT_TRUE(eventually([&] { return are_shared(); }));
  put_noop();
  node("b").kill();
  start("b");
  const int n = create_jobs(node("b"), 100, 0, 500);
  EXPECT_TRUE(all_fired_once(n));
  EXPECT_TRUE(eventually([&] {
    std::set<std::string> alive;
    const Reply listed = node("a").rest().get("/v1/nodes");
    for (const Json& item : listed.body["items"])
      if (item["shards"] == kClusterShards / 2) alive.insert(item["id"].get<std::string>());
    return alive.size() == 2;
  })) << "the new process has its part, the old one nothing";
}

TEST_F(Cluster, TheTablesOfNodesAndShardsFitAScreen) {
  start("a-node-with-a-rather-long-name.example.com");
  const std::string url = "http://127.0.0.1:" + std::to_string(nodes.begin()->second->port());
  for (const char* command : {"nodes", "shards"}) {
    const Ran ran = run_tocsin({command, "--url", url});
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    std::istringstream lines(ran.out);
    int n = 0;
    for (std::string line; std::getline(lines, line); ++n) {
      const auto characters = std::ranges::count_if(line, [](char c) { return (c & 0xC0) != 0x80; });
      EXPECT_LE(characters, 80) << line;
    }
    EXPECT_GT(n, 1);
  }
}

}  // namespace
}  // namespace tocsin

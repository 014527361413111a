// What tests of moving shards share: servers whose log can be decoded, and two databases with a node.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "support/node_process.h"
#include "support/server.h"
#include "support/test_database.h"
#include "tocsin/shard.h"

namespace tocsin {

inline constexpr int kShards = 8;  // 0 to 3 begin in a, the others in b

// A server whose log can be decoded.
class LogicalCluster {
 public:
  LogicalCluster() {
    execute(url(), "ALTER SYSTEM SET wal_level = logical");
    cluster_.crash();
    cluster_.start();
  }
  const std::string& url() const { return cluster_.url(); }
  void crash() { cluster_.crash(); }
  void start() { cluster_.start(); }

 private:
  PrivateCluster cluster_;
};

// A transaction that stays open.
class Open {
 public:
  Open(const std::string& url, const std::string& statement) : connection_(url), tx_(connection_) {
    tx_.exec(statement);
  }

 private:
  pqxx::connection connection_;
  pqxx::work tx_;
};

inline std::string text_of(const std::string& url, const std::string& sql) {
  pqxx::connection connection(url);
  const auto rows = pqxx::nontransaction(connection).exec(sql);
  return rows.empty() || rows[0][0].is_null() ? "" : rows[0][0].c_str();
}

// The worker that applies the changes of a source is stopped.
class StoppedApply {
 public:
  explicit StoppedApply(const std::string& target)
      : pid_(std::stoi(text_of(target, "SELECT pid FROM pg_stat_subscription WHERE relid IS NULL"))) {
    ::kill(pid_, SIGSTOP);
  }
  ~StoppedApply() { ::kill(pid_, SIGCONT); }
  StoppedApply(const StoppedApply&) = delete;
  StoppedApply& operator=(const StoppedApply&) = delete;

 private:
  const int pid_;
};

struct Two {
  std::string a, b;

  std::vector<std::string> options() const { return {"--database", "a=" + a, "--database", "b=" + b}; }
  std::vector<std::string> command(std::vector<std::string> words) const {
    for (const std::string& option : options()) words.push_back(option);
    return words;
  }
  void install() const {
    const Ran ran = run_tocsin(command({"migrate", "--shards", std::to_string(kShards)}));
    ASSERT_EQ(ran.exit_code, 0) << ran.err;
  }
  // One column of both databases together.
  std::multiset<std::string> both(const std::string& sql) const {
    std::multiset<std::string> all;
    for (const std::string& url : {a, b}) {
      pqxx::connection connection(url);
      for (const auto& row : pqxx::nontransaction(connection).exec(sql)) all.insert(row[0].c_str());
    }
    return all;
  }
  std::size_t rows_of(const std::string& url, int shard) const {
    pqxx::connection connection(url);
    return pqxx::nontransaction(connection)
        .exec1("SELECT (SELECT count(*) FROM tocsin.job_live WHERE shard = " + std::to_string(shard) +
               ") + (SELECT count(*) FROM tocsin.job_history WHERE shard = " + std::to_string(shard) + ")")[0]
        .as<std::size_t>();
  }
  // What moves leave on the servers, and should not.
  std::size_t leftovers() const {
    return both(
               "SELECT pubname FROM pg_publication UNION ALL SELECT slot_name FROM pg_replication_slots UNION ALL "
               "SELECT shard::text FROM tocsin.move UNION ALL SELECT tgname FROM pg_trigger WHERE tgname LIKE 'keep%'")
               .size() +
           both("SELECT subname FROM pg_subscription").size();
  }
  Ran move(int shard, const std::string& to) const {
    return run_tocsin(command({"shard", "move", std::to_string(shard), "--to", to}));
  }
  Ran abort(int shard) const { return run_tocsin(command({"shard", "move", std::to_string(shard), "--abort"})); }
  // A move that continues while the test does something else.
  std::unique_ptr<Process> begin(const std::vector<std::string>& words) const {
    auto arguments = command(words);
    arguments.insert(arguments.begin(), {required_env("TOCSIN_BINARY"), "shard", "move"});
    return std::make_unique<Process>(arguments);
  }
  // A node that was given both; b as an option, for NodeProcess names the first.
  std::unique_ptr<NodeProcess> node() const {
    return std::make_unique<NodeProcess>("a=" + a, std::vector<std::string>{"--database", "b=" + b});
  }
};

inline std::string key_of(int shard, int number) {
  for (int i = number * 1000;; ++i) {
    const std::string key = "key-" + std::to_string(i);
    if (shard_of(key, kShards) == shard) return key;
  }
}

inline void put(Rest& rest, const std::string& kind) {
  ASSERT_LT(rest.put("/v1/types/" + kind, {{"handler", {{"kind", kind}}}}).status, 300);
}

inline std::string create(Rest& rest, const std::string& type, const std::string& key, int delay_ms) {
  const Reply reply = rest.post("/v1/jobs", {{"biz_type", type}, {"biz_id", key}, {"delay_ms", delay_ms}});
  EXPECT_EQ(reply.status, 201) << reply.text;
  return reply.body.value("job_id", "0");
}

inline std::string database_of(Rest& rest, int shard) {
  return rest.get("/v1/shards").body["items"][static_cast<std::size_t>(shard)]["database"];
}

}  // namespace tocsin

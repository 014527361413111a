// Several databases of one installation, with jobs that SQL callers create where their shards do not live.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "support/node_process.h"
#include "support/server.h"
#include "support/test_database.h"
#include "tocsin/shard.h"

namespace tocsin {

inline constexpr int kOutboxShards = 8;  // of two databases, 0 to 3 begin in a, the others in b

// Every call gives another key.
inline std::string outbox_key(int shard) {
  static int last = 0;
  while (true) {
    std::string key = "key-" + std::to_string(++last);
    if (shard_of(key, kOutboxShards) == shard) return key;
  }
}

// Several databases of one installation, and nodes on them.
class OutboxDatabases {
 public:
  explicit OutboxDatabases(std::vector<std::string> urls) : urls_(std::move(urls)) {
    const Ran ran = run_tocsin(with({"migrate", "--shards", std::to_string(kOutboxShards)}));
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

inline std::string create_statement(const std::string& key, const std::string& more = "clock_timestamp()") {
  return "SELECT tocsin.create_job('noop', '" + key + "', " + more + ")";
}

inline std::string sqlstate_of(const std::string& statement, pqxx::connection& connection) {
  try {
    pqxx::nontransaction(connection).exec(statement);
    return "";
  } catch (const pqxx::sql_error& error) {
    return error.sqlstate();
  }
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

using Ids = std::multiset<std::int64_t>;

}  // namespace tocsin

// TestDatabase: a database for one test. PrivateCluster, PairOfServers: PostgreSQL servers for one test, which it may
// crash.
#pragma once

#include <memory>
#include <pqxx/pqxx>
#include <string>

#include "tocsin/shard.h"

namespace tocsin {

// A database on the server that the environment variable TOCSIN_TEST_DATABASE names, with settings that break careless
// SQL (such as an empty search_path). Dropped with the object. Thread: owner only.
class TestDatabase {
 public:
  // Installs Tocsin's schema with this number of shards; 0: no schema.
  explicit TestDatabase(int shards = 8);
  ~TestDatabase();
  TestDatabase(const TestDatabase&) = delete;
  TestDatabase& operator=(const TestDatabase&) = delete;

  const std::string& url() const { return url_; }
  pqxx::result query(const std::string& sql);
  std::int64_t number(const std::string& sql);  // the value of a query with one row and one column
  void add_noop_type();                         // the type `noop` of instant jobs; its id is 1
  void place_all_shards_in(DatabaseId database_id);

 private:
  const int shards_;
  std::string name_;
  std::string url_;
  std::unique_ptr<pqxx::connection> connection_;  // made at the first query
};

// A PostgreSQL server; removed with the object. Thread: owner only.
class PrivateCluster {
 public:
  PrivateCluster();
  ~PrivateCluster();
  PrivateCluster(const PrivateCluster&) = delete;
  PrivateCluster& operator=(const PrivateCluster&) = delete;

  const std::string& url() const { return url_; }
  const std::string& folder() const { return folder_; }
  void crash();  // as a power failure: the next start() recovers from the log
  void start();

 private:
  std::string folder_;
  std::string url_;
};

// A PostgreSQL server and its standby, with Tocsin's schema. Thread: owner only.
class PairOfServers {
 public:
  // `shards`: the installation's shard count.
  explicit PairOfServers(int shards);
  ~PairOfServers();
  PairOfServers(const PairOfServers&) = delete;
  PairOfServers& operator=(const PairOfServers&) = delete;

  // Names both servers: a client connects to the one that takes writes.
  const std::string& url() const { return url_; }
  // The standby receives no more commits; returns when it has those before.
  void stop_standby();
  // Crashes the primary, unless stop_standby() was called after the standby has received all its commits. Returns when
  // the standby takes writes.
  void fail_over();

 private:
  void wait_for_standby();

  PrivateCluster primary_;
  std::string standby_;  // its folder
  std::string standby_url_;
  std::string url_;
  bool is_stopped_ = false;
};

}  // namespace tocsin

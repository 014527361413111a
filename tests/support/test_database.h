// Databases and whole servers of a test's own.
#pragma once

#include <memory>
#include <pqxx/pqxx>
#include <string>

namespace tocsin {

// A database on the server that TOCSIN_TEST_DATABASE names, with settings that break careless SQL; dropped at the end.
// Thread: owner only.
class TestDatabase {
 public:
  // With Tocsin's schema in so many shards; 0: without.
  explicit TestDatabase(int shards = 8);
  ~TestDatabase();
  TestDatabase(const TestDatabase&) = delete;
  TestDatabase& operator=(const TestDatabase&) = delete;

  const std::string& url() const { return url_; }
  pqxx::result query(const std::string& sql);
  std::int64_t number(const std::string& sql);  // of the only row and column

 private:
  std::string name_;
  std::string url_;
  std::unique_ptr<pqxx::connection> connection_;  // from the first query on
};

// A PostgreSQL server to be crashed at will; gone at the end.
// Thread: owner only.
class PrivateCluster {
 public:
  PrivateCluster();
  ~PrivateCluster();
  PrivateCluster(const PrivateCluster&) = delete;
  PrivateCluster& operator=(const PrivateCluster&) = delete;

  const std::string& url() const { return url_; }
  const std::string& folder() const { return folder_; }
  void crash();  // as a loss of power would: the next start recovers from the log
  void start();

 private:
  std::string folder_;
  std::string url_;
};

// Such a server and its standby, with Tocsin's schema in so many shards.
// Thread: owner only.
class PairOfServers {
 public:
  explicit PairOfServers(int shards);
  ~PairOfServers();
  PairOfServers(const PairOfServers&) = delete;
  PairOfServers& operator=(const PairOfServers&) = delete;

  // Names both servers; a connection is made to the one that takes writes.
  const std::string& url() const { return url_; }
  // The primary crashes when the standby has all that it wrote; the standby takes writes when this returns.
  void fail_over();

 private:
  PrivateCluster primary_;
  std::string standby_;  // its folder
  std::string url_;
};

}  // namespace tocsin

// PostgresServer: the PostgreSQL server that the bench measures. The caller names it, or the bench starts a private one
// for the run.
#pragma once

#include <mutex>
#include <set>
#include <string>

#include "bench_core/process.h"

namespace tocsin::bench {

class PostgresServer {
 public:
  // `url`: a database in which the user may create others; empty: starts a private server by scripts/postgres.sh below
  // `root`. Throws Failure.
  PostgresServer(const std::string& url, const std::string& root);
  // Starts another private server, with these environment variables added. Throws Failure.
  PostgresServer(const PostgresServer& other, const Environment& environment);
  ~PostgresServer();  // remove_all()
  PostgresServer(const PostgresServer&) = delete;
  PostgresServer& operator=(const PostgresServer&) = delete;

  // Creates an empty database and returns its URL. The server has written a checkpoint first, so that none disturbs the
  // measurement.
  std::string create_database();
  void drop_database(const std::string& url);

  // Drops the databases of this run, or removes the private server. Thread: any.
  void remove_all();

  const std::string& url() const { return url_; }
  bool is_private() const { return !folder_.empty(); }
  const std::string& script() const { return script_; }  // scripts/postgres.sh

 private:
  void start(Environment environment);  // starts the private server

  const std::string script_;
  std::string folder_;  // of the private server; empty: none
  std::string url_;
  int count_ = 0;
  std::mutex mutex_;
  std::set<std::string> databases_;  // guarded by mutex_
};

// A database, dropped with the object.
class Database {
 public:
  explicit Database(PostgresServer& server) : server_(server), url_(server.create_database()) {}
  ~Database() { server_.drop_database(url_); }
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;
  const std::string& url() const { return url_; }

 private:
  PostgresServer& server_;
  const std::string url_;
};

// A private primary and its standby; removed with the object.
class ServerPair {
 public:
  // `script`: scripts/postgres.sh. Throws Failure.
  explicit ServerPair(const std::string& script);
  ~ServerPair();
  ServerPair(const ServerPair&) = delete;
  ServerPair& operator=(const ServerPair&) = delete;

  // Names both servers: a client connects to the one that takes writes.
  const std::string& url() const { return url_; }

  // Kills the primary as a crash does, and promotes the standby. Returns when the new primary takes writes.
  void fail_over();

 private:
  const std::string script_, folder_;
  std::string url_;
};

}  // namespace tocsin::bench

// The PostgreSQL that is measured: one that the caller names, or a private cluster that lives as long as the run.
#pragma once

#include <mutex>
#include <set>
#include <string>

#include "bench_core/process.h"

namespace tocsin::bench {

class PostgresServer {
 public:
  // `url` names a maintenance database whose user may create databases; empty: starts a private cluster by the script
  // scripts/postgres.sh below `root`. Throws Failure.
  PostgresServer(const std::string& url, const std::string& root);
  // Another private cluster, with more in its environment. Throws Failure.
  PostgresServer(const PostgresServer& other, const Environment& environment);
  ~PostgresServer();  // remove_all()
  PostgresServer(const PostgresServer&) = delete;
  PostgresServer& operator=(const PostgresServer&) = delete;

  // An empty database; returns its URL. The server has written a checkpoint, so that none falls into a measurement.
  std::string create_database();
  void drop_database(const std::string& url);

  // Takes back whatever this run has put on the machine.
  // Thread: any.
  void remove_all();

  const std::string& url() const { return url_; }
  bool is_private() const { return !folder_.empty(); }
  const std::string& script() const { return script_; }  // scripts/postgres.sh

 private:
  void start(Environment environment);  // the private cluster

  const std::string script_;
  std::string folder_;  // of the private cluster, or empty
  std::string url_;
  int count_ = 0;
  std::mutex mutex_;
  std::set<std::string> databases_;  // guarded by mutex_
};

// Dropped when it goes out of scope.
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

// A primary and its standby, both private; they are removed with this object.
class ServerPair {
 public:
  // `script`: scripts/postgres.sh. Throws Failure.
  explicit ServerPair(const std::string& script);
  ~ServerPair();
  ServerPair(const ServerPair&) = delete;
  ServerPair& operator=(const ServerPair&) = delete;

  // Names both servers; a connection is made to the one that takes writes.
  const std::string& url() const { return url_; }

  // The primary ends as in a crash, and the standby becomes the primary. Returns when it takes writes.
  void fail_over();

 private:
  const std::string script_, folder_;
  std::string url_;
};

}  // namespace tocsin::bench

#include "bench/postgres_server.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>

#include "bench_core/process.h"
#include "cli/config_file.h"
#include "cli/rest_client.h"
#include "support/server.h"

namespace tocsin::bench {
namespace {

constexpr const char* kServerOptions =
    "-c shared_buffers=1GB -c max_wal_size=4GB -c min_wal_size=1GB -c shared_preload_libraries=pg_stat_statements";

// On a disk: /tmp may be memory, where a commit costs nothing.
std::string scratch_folder() {
  std::string path = process_environment("TMPDIR").value_or("/var/tmp") + "/tocsin-bench.XXXXXX";
  if (!::mkdtemp(path.data())) throw Failure("cannot create " + path);
  ::chmod(path.c_str(), 0755);  // PostgreSQL may run as another user
  return path;
}

// A server that has been in use has old files to write its log into. A new one fills each of its first with zeros, and
// no transaction commits meanwhile: for 8 ms, seven times in a second of 90,000 jobs.
void lay_in_log_files(const std::string& url) {
  // As many as min_wal_size keeps; an empty one is not left.
  execute(url, "SELECT pg_logical_emit_message(false, 'tocsin', ''), pg_switch_wal() FROM generate_series(1, 64)");
  execute(url, "CHECKPOINT");
}

}  // namespace

PostgresServer::PostgresServer(const std::string& url, const std::string& root)
    : script_(root + "/scripts/postgres.sh"), url_(url) {
  if (url_.empty()) start({});
}

PostgresServer::PostgresServer(const PostgresServer& other, const Environment& environment) : script_(other.script_) {
  start(environment);
}

void PostgresServer::start(Environment environment) {
  folder_ = scratch_folder();
  try {
    environment.emplace_back("TOCSIN_PG_OPTIONS", kServerOptions);
    url_ = url_of(output_of({script_, "start", folder_ + "/postgres"}, environment), "postgres");
    lay_in_log_files(url_);
  } catch (...) {
    remove_all();
    throw;
  }
}

PostgresServer::~PostgresServer() { remove_all(); }

std::string PostgresServer::create_database() {
  const std::string name = "tocsin_bench_" + std::to_string(::getpid()) + "_" + std::to_string(++count_);
  {
    const std::scoped_lock lock(mutex_);
    databases_.insert(name);
  }
  execute(url_, "CREATE DATABASE " + name + " TEMPLATE template0 ENCODING 'UTF8'");
  execute(url_, "CHECKPOINT");
  return url_of(url_, name);
}

void PostgresServer::drop_database(const std::string& url) {
  const std::scoped_lock lock(mutex_);
  for (const std::string& name : databases_) {
    if (url_of(url_, name) != url) continue;
    try {
      execute(url_, "DROP DATABASE IF EXISTS " + name + " WITH (FORCE)");
      databases_.erase(name);
    } catch (const std::exception& error) {
      std::cerr << "left behind: database " << name << ": " << error.what() << '\n';
    }
    return;
  }
}

void PostgresServer::remove_all() {
  if (folder_.empty()) {
    const std::set<std::string> left = [&] {
      const std::scoped_lock lock(mutex_);
      return databases_;
    }();
    for (const std::string& name : left) drop_database(url_of(url_, name));
    return;
  }
  try {
    output_of({script_, "remove", folder_ + "/postgres"});
    ::rmdir(folder_.c_str());
  } catch (const Failure& failure) {
    std::cerr << "left behind: " << folder_ << ": " << failure.what() << '\n';
  }
}

ServerPair::ServerPair(const std::string& script) : script_(script), folder_(scratch_folder()) {
  const Environment options = {{"TOCSIN_PG_OPTIONS", kServerOptions}};
  const std::string primary = url_of(output_of({script_, "start", folder_ + "/primary"}, options), "tocsin");
  const std::string standby =
      url_of(output_of({script_, "standby", folder_ + "/standby", folder_ + "/primary"}, options), "tocsin");
  const auto host_of = [&](const std::string& url) {
    const auto from = url.find('@') + 1;
    return url.substr(from, url.rfind('/') - from);
  };
  url_ = primary;
  url_.insert(url_.rfind('/'), "," + host_of(standby));
  url_ += "?target_session_attrs=read-write";
}

ServerPair::~ServerPair() {
  for (const char* const server : {"/standby", "/primary"}) {
    try {
      output_of({script_, "remove", folder_ + server});
    } catch (const Failure& failure) {
      std::cerr << "left behind: " << folder_ << server << ": " << failure.what() << '\n';
    }
  }
  ::rmdir(folder_.c_str());
}

void ServerPair::fail_over() {
  output_of({script_, "stop-immediate", folder_ + "/primary"});
  output_of({script_, "promote", folder_ + "/standby"});
}

}  // namespace tocsin::bench

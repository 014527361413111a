// What is measured: one node, or several that share a database, started for one measurement, with one type of job.
#pragma once

#include <deque>
#include <memory>
#include <pqxx/pqxx>
#include <string>
#include <vector>

#include "bench/http_load.h"
#include "bench/jobs.h"
#include "bench/postgres_server.h"
#include "bench/program.h"
#include "bench_core/process.h"
#include "cli/rest_client.h"

namespace tocsin::bench {

Connection connection_to(int port);  // on this machine

struct SubjectOptions {
  Program binary;
  std::string handler = R"({"kind":"noop"})";
  std::vector<std::string> further = {};  // options of `serve`
  std::vector<std::string> wrapper = {};  // in front of the command, such as `env NAME=VALUE`
};

// Thread: owner only, the main thread.
class Subject {
 public:
  static constexpr std::size_t kBatch = 500;
  static constexpr int kBatchesInFlight = 4;

  // On an empty database of its own. Returns when the node is ready and knows the type. Throws Failure.
  Subject(PostgresServer& server, const SubjectOptions& options)
      : Subject(std::make_unique<Database>(server), "", options) {}
  // On a database that outlives it. Jobs that stand there already are not waited for.
  Subject(const std::string& database, const SubjectOptions& options) : Subject(nullptr, database, options) {}

  void put_type(const std::string& name, const std::string& handler = R"({"kind":"noop"})");

  // Of the first node, which takes all requests.
  int port() const { return port_; }
  const Process& process() const { return *process_; }
  // Of all nodes: the sum of a counter of /metrics, processor time in seconds, and the largest resident memory.
  double counter(const std::string& name) const;
  double processor_seconds() const;
  double resident_mb() const;
  RestClient& rest() { return *rest_; }
  pqxx::connection& sql() { return *sql_; }
  // After a failover: a new connection, and the node is ready again.
  void reconnect();
  const std::string& database() const { return database_; }

  // By the batch API. `ids`, when given, receives the job_ids in the order of `jobs`.
  LoadReport create(const std::vector<BenchJob>& jobs, std::size_t batch = kBatch,
                    std::vector<std::string>* ids = nullptr);

  // Statistics, and the checkpoint out of the way: what follows a bulk load on any database that is looked after.
  void settle();

  WallTime db_now();
  void wait_until(WallTime time, const std::string& what);
  // Until no job is pending or running but those that stood there before; throws Failure when nothing moves any more.
  void wait_until_finished(std::int64_t jobs, const std::string& what);
  std::int64_t unfinished();

  WallTime last_finished_at(WallTime since = {});
  // started_at - action_time of all jobs finished since in ms, sorted.
  std::vector<double> lateness_ms(WallTime since = {}, const std::string& type = kType);

  // Ends the nodes; the database stays.
  void stop();

 private:
  Subject(std::unique_ptr<Database> own, const std::string& database, const SubjectOptions& options);

  void wait_until_ready();
  void start_others(const SubjectOptions& options);
  WallTime time_of(const std::string& query);

  const std::unique_ptr<Database> own_;  // or null
  const std::string database_;
  const int port_;
  std::unique_ptr<Process> process_;
  struct Other {
    int port;
    std::unique_ptr<Process> process;
  };
  std::deque<Other> others_;  // nodes that share the database
  std::unique_ptr<RestClient> rest_;
  std::unique_ptr<pqxx::connection> sql_;
  std::int64_t standing_ = 0;  // jobs that were pending or running before
};

}  // namespace tocsin::bench

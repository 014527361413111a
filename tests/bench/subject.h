// Subject: the node that a measurement measures, or several nodes on one database, with one type of jobs.
#pragma once

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
  std::vector<std::string> further = {};  // more options of `serve`
  std::vector<std::string> wrapper = {};  // in front of the command, such as `env NAME=VALUE`
};

// Thread: owner only, the main thread.
class Subject {
 public:
  static constexpr std::size_t kBatch = 500;
  static constexpr int kBatchesInFlight = 4;

  // On a new database. Returns when the node is ready and knows the type. Throws Failure.
  Subject(PostgresServer& server, const SubjectOptions& options)
      : Subject(std::make_unique<Database>(server), "", options) {}
  // On a database that outlives the object. Jobs that are live there already are not waited for.
  Subject(const std::string& database, const SubjectOptions& options) : Subject(nullptr, database, options) {}

  void put_type(const std::string& name, const std::string& handler = R"({"kind":"noop"})");

  // The first node; it gets all requests.
  int port() const { return port_; }
  const Process& process() const { return *process_; }
  // Of all nodes: the sum of a counter of /metrics; processor time in seconds; the largest resident memory, now and at
  // any time.
  double counter(const std::string& name) const;
  double processor_seconds() const;
  double resident_mb() const;
  double peak_mb() const;
  RestClient& rest() { return *rest_; }
  pqxx::connection& sql() { return *sql_; }
  // After a failover: connects again, and waits until the node is ready.
  void reconnect();
  const std::string& database() const { return database_; }

  // Creates jobs by POST /v1/jobs/batch, `batch` at a time. `ids`: if not null, gets the job_ids in the order of
  // `jobs`.
  LoadReport create(const std::vector<BenchJob>& jobs, std::size_t batch = kBatch,
                    std::vector<std::string>* ids = nullptr);

  // Vacuums, analyses and writes a checkpoint, as a database in normal use has done some time after a bulk load.
  void settle();

  WallTime db_now();
  void wait_until(WallTime time, const std::string& what);
  // Waits until no job is pending or running, except those that were before. Throws Failure if no job ends any more.
  // `what`: for the message.
  void wait_until_finished(std::int64_t jobs, const std::string& what);
  std::int64_t unfinished();

  WallTime last_finished_at(WallTime since = {});
  // started_at - action_time of all jobs finished since, in milliseconds, sorted.
  std::vector<double> lateness_ms(WallTime since = {}, const std::string& type = kType);

  // Ends the nodes; the database stays.
  void stop();

 private:
  Subject(std::unique_ptr<Database> own, const std::string& database, const SubjectOptions& options);

  void wait_until_ready();
  void start_others(const SubjectOptions& options);
  WallTime time_of(const std::string& query);

  const std::unique_ptr<Database> own_;  // null: the caller's database
  const std::string database_;
  const int port_;
  std::unique_ptr<Process> process_;
  struct Other {
    int port;
    std::unique_ptr<Process> process;
  };
  std::vector<Other> others_;  // nodes that share the database
  std::unique_ptr<RestClient> rest_;
  std::unique_ptr<pqxx::connection> sql_;
  std::int64_t standing_ = 0;  // jobs that were live before
};

}  // namespace tocsin::bench

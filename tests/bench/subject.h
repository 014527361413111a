// What is measured: one node, started for one measurement on a database of its own, with one type of job.
#pragma once

#include <memory>
#include <pqxx/pqxx>
#include <string>
#include <vector>

#include "bench/http_load.h"
#include "bench/jobs.h"
#include "bench/postgres_server.h"
#include "bench/process.h"
#include "cli/rest_client.h"

namespace tocsin::bench {

struct SubjectOptions {
  std::string binary;
  std::string handler = R"({"kind":"noop"})";
  std::vector<std::string> further = {};  // options of `serve`
};

// Thread: owner only, the main thread.
class Subject {
 public:
  static constexpr std::size_t kBatch = 500;
  static constexpr int kBatchesInFlight = 4;

  // Returns when the node is ready and knows the type. Throws Failure.
  Subject(PostgresServer& server, const SubjectOptions& options);

  int port() const { return port_; }
  const Process& process() const { return *process_; }
  RestClient& rest() { return *rest_; }
  pqxx::connection& sql() { return sql_; }
  const std::string& database() const { return database_.url(); }

  // By the batch API. `ids`, when given, receives the job_ids in the order of `jobs`.
  LoadReport create(const std::vector<BenchJob>& jobs, std::size_t batch = kBatch,
                    std::vector<std::string>* ids = nullptr);

  // Statistics, and the checkpoint out of the way: what follows a bulk load on any database that is looked after.
  void settle();

  WallTime db_now();
  void wait_until(WallTime time, const std::string& what);
  // Until no job is pending or running; throws Failure when nothing moves any more.
  void wait_until_finished(std::int64_t jobs, const std::string& what);
  std::int64_t unfinished();

  WallTime last_finished_at();
  // started_at - action_time of all finished jobs in ms, sorted.
  std::vector<double> lateness_ms();

  // Ends the node; the database stays.
  void stop() { process_->stop(); }

 private:
  void wait_until_ready();
  WallTime time_of(const std::string& query);

  Database database_;
  const int port_;
  std::unique_ptr<Process> process_;
  std::unique_ptr<RestClient> rest_;
  pqxx::connection sql_;
};

}  // namespace tocsin::bench

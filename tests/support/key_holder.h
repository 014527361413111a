// KeyHolder: a transaction that holds the keys of jobs of the type noop, as a create_job() does until its commit.
#pragma once

#include <pqxx/pqxx>
#include <stdexcept>
#include <string>

#include "tocsin/shard.h"

namespace tocsin {

// Undone with the object, and then the keys are free. Thread: owner only.
class KeyHolder {
 public:
  explicit KeyHolder(const std::string& url) : connection_(url) {}

  void create(const std::string& biz_id, const std::string& key) {
    tx_.exec_params("SELECT tocsin.create_job('noop', $1, '2040-01-01', NULL, $2)", biz_id, key);
  }
  // Creates what that finished job is: the call finds the job. Throws std::runtime_error if it does not.
  void hold_key_of(JobId finished) {
    const auto found = tx_.exec_params1(
        "SELECT tocsin.create_job('noop', biz_id, action_time, NULL, idempotency_key) FROM tocsin.job_history WHERE "
        "job_id = $1",
        finished);
    if (found[0].as<JobId>() != finished) throw std::runtime_error("create_job() has not found the finished job");
  }
  int process() const { return connection_.backendpid(); }

 private:
  pqxx::connection connection_;
  pqxx::work tx_{connection_};
};

}  // namespace tocsin

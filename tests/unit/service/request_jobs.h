// RequestJobs: what tests of request batches share: a database in memory with one type, and its jobs.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "support/fake_sessions.h"

namespace tocsin {

class RequestJobs {
 protected:
  RequestJobs() {
    BizType type;
    type.name = "order.unpaid";
    type.handler_json = R"({"kind":"noop"})";
    type.handler_kind = "noop";
    type_id_ = database.put_type(type, now_).type.type_id;
  }
  NewJob job(const std::string& biz_id, const std::string& key = "") const {
    NewJob job;
    job.biz_id = biz_id;
    job.type_id = type_id_;
    job.when.in = std::chrono::hours(1);
    if (!key.empty()) job.idempotency_key = key;
    return job;
  }
  JobId create(const std::string& biz_id) {
    return (*database.create({job(biz_id)}, CreateMode::each_by_itself, now_)).front().job_id;
  }
  // Claims them two hours later, for a day.
  std::vector<Lease> lease(const std::vector<JobId>& ids) {
    now_ += std::chrono::hours(2);
    std::vector<Lease> leases;
    for (const JobId id : ids) {
      const std::vector<ClaimedJob> claimed =
          database.claim({Candidate{id, type_id_, {}}}, {std::chrono::hours(24)}, {.seed = 7, .node = "n"}, now_).won;
      leases.push_back({id, claimed.at(0).token});
    }
    return leases;
  }
  Lease lease(JobId id) { return lease(std::vector{id}).front(); }
  // Keeps the reply to a request.
  static auto to(auto& reply) {
    return [&reply](auto r) { reply = std::move(r); };
  }

  WallTime now_ = std::chrono::sys_days(std::chrono::year(2026) / 3 / 1);
  FakeDatabase database{[this] { return now_; }};
  TypeId type_id_ = 0;
};

}  // namespace tocsin

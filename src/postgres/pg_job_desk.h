// The callers' verbs on PostgreSQL.
// Thread: owner only.
#pragma once

#include <deque>
#include <unordered_map>

#include "postgres/queries.h"
#include "postgres/session.h"
#include "tocsin/job_desk.h"

namespace tocsin {

class PgJobDesk final : public JobDesk {
 public:
  // `session` must outlive the desk. `shards`: as installed in the database.
  PgJobDesk(Session& session, int shards) : session_(session), shards_(shards) {}

  // Connects, and lets the server plan the statements that callers wait for.
  Status warm_up();

  Result<std::vector<CreateReply>> create(std::span<const NewJob> jobs, CreateMode mode) override;
  Result<std::vector<CancelReply>> cancel(std::span<const JobId> jobs) override;
  Result<std::vector<CancelReply>> cancel_all(const std::string& biz_id, std::optional<TypeId> type) override;
  Result<ChangeReply> reschedule(JobId job, const When& when) override;
  Result<ChangeReply> run_now(JobId job) override;
  Result<ChangeReply> retry(JobId job) override;
  Result<int> retry_many(const RetryMany& request) override;
  // pg_leases.cc
  Result<std::vector<std::optional<LeasedJob>>> leased(std::span<const Lease> leases) override;
  Result<std::vector<LeaseReply>> finish_leased(std::span<const FinishRequest> requests,
                                                const std::string& node) override;
  Result<std::vector<ExtendReply>> extend(std::span<const Lease> leases, Duration ttr) override;

 private:
  Status reserve_ids(std::size_t n);
  // After a commit whose answer was lost: looks for the jobs it created. True: they are there, and `replies` are
  // completed from them.
  Result<bool> look_up(const std::vector<JobId>& created, std::vector<CreateReply>& replies);
  using CancelReplies = std::unordered_map<JobId, CancelReply>;
  // One pass over those not answered yet; adds the answers it has. REQUIRES: `open` is sorted.
  Status cancel_open(std::span<const JobId> open, sql::CancelPass pass, CancelReplies& replies);
  // pg_leases.cc
  class LeaseWrite;
  Result<ChangeReply> change_pending(JobId job, const char* name, const char* assignments,
                                     const std::vector<std::string>& values);

  Session& session_;
  const int shards_;
  std::deque<std::int64_t> sequence_;  // numbers drawn from the database, not used yet
};

}  // namespace tocsin

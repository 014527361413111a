// JobDesk on PostgreSQL: client requests for jobs (create, cancel, change, lease). Each thread that serves requests has
// one, with a session of its own. Thread: owner only.
#pragma once

#include <chrono>
#include <deque>
#include <unordered_map>

#include "ports/job_desk.h"
#include "postgres/queries.h"
#include "postgres/session.h"

namespace tocsin {

class PgJobDesk final : public JobDesk {
 public:
  // `session` must outlive the desk. `shards`: the installation's shard count.
  PgJobDesk(Session& session, int shards) : session_(session), shards_(shards) {}

  // Connects, draws ids, and plans the statements of create and find, so that the first request does not wait for that.
  Status warm_up();

  Result<std::vector<CreateReply>> create(std::span<const NewJob> jobs, CreateMode mode) override;
  Result<std::vector<CancelReply>> cancel(std::span<const JobId> jobs) override;
  Result<CancelAllReply> cancel_all(const std::string& biz_id, std::optional<TypeId> type) override;
  Result<ChangeBatchReply> change_together(const ChangeBatch& batch) override;
  Result<std::vector<std::optional<Job>>> find(std::span<const JobId> jobs) override;
  Result<std::vector<std::vector<Job>>> list_keys(std::span<const KeyQuery> queries) override;
  Result<std::vector<ChangeReply>> retry_each(std::span<const JobId> jobs) override;  // pg_retries.cc
  Result<int> retry_many(const RetryMany& request) override;
  // pg_leases.cc
  Result<std::vector<std::optional<LeasedJob>>> leased(std::span<const Lease> leases) override;
  Result<std::vector<LeaseReply>> finish_leased(std::span<const FinishRequest> requests,
                                                const std::string& node) override;
  Result<std::vector<ExtendReply>> extend(std::span<const Extension> extensions) override;

 private:
  Status reserve_ids(std::size_t n);  // into sequence_
  Result<std::vector<CreateReply>> create_at_once(std::span<const NewJob> jobs, CreateMode mode, int most_tries);
  // CreateMode::each_by_itself: creates all jobs but those whose keys other transactions hold, and adds these to
  // `held`, as indexes into the call. `first`: the index of jobs[0] in the call.
  Status create_unheld(std::span<const NewJob> jobs, std::size_t first, std::vector<CreateReply>& replies,
                       std::vector<std::size_t>& held);
  Result<std::vector<JobId>> draw_ids(std::span<const NewJob> jobs);
  // After a commit whose answer was lost: looks for the jobs it created. True: they are there, and `replies` are
  // completed from them.
  Result<bool> look_up(const std::vector<JobId>& created, std::vector<CreateReply>& replies);
  using CancelReplies = std::unordered_map<JobId, CancelReply>;
  // One pass over the jobs without an answer; adds answers to `replies`, but not for locked rows. REQUIRES: `open` is
  // sorted.
  Status cancel_open(std::span<const JobId> open, sql::LockPolicy pass, CancelReplies& replies);
  // pg_retries.cc: adds those of `jobs` that became pending. Jobs that another transaction holds, or whose shard
  // refuses changes while it moves, are left out.
  using Revived = std::unordered_map<JobId, Job>;
  Status revive(std::span<const JobId> jobs, Revived& revived);
  // pg_leases.cc
  class LeaseWrite;

  Session& session_;
  const int shards_;
  std::deque<std::int64_t> sequence_;                 // numbers for job ids, drawn from the database, not used yet
  std::chrono::steady_clock::time_point drawn_at_{};  // the first of them
  std::size_t block_ = 0;                             // how many are drawn at a time
  std::uint64_t drawn_on_ = 0;  // the connection that drew them; 0: none, or they must not be used
};

}  // namespace tocsin

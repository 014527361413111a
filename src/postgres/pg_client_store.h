// PgClientStore: carries out callers' requests for jobs of one database (create, find, cancel, change, lease).
// Implements ClientStore, which says what each call does and its Errors (ports/client_store.h). RequestPool and the
// coalescers of src/service make one for each of their threads. Thread: the one that owns the session.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <unordered_map>

#include "ports/client_store.h"
#include "postgres/queries.h"
#include "postgres/session.h"

namespace tocsin {

class PgClientStore final : public ClientStore {
 public:
  // `session` must outlive the store. `shards`: the installation's shard count.
  PgClientStore(Session& session, int shards) : session_(session), shards_(shards) {}

  // Connects, draws ids, and plans the statements of create and find, so that the first request does not wait for these
  // steps.
  Status warm_up();

  Result<std::vector<CreateReply>> create(std::span<const NewJob> jobs, CreateMode mode) override;
  Result<std::vector<CancelReply>> cancel(std::span<const JobId> jobs, LockWait wait) override;
  Result<CancelAllReply> cancel_all(const std::string& biz_id, std::optional<TypeId> type) override;
  Result<ChangeBatchReply> change_together(const ChangeBatch& batch) override;
  Result<std::vector<std::optional<Job>>> find(std::span<const JobId> jobs) override;
  Result<std::vector<KeyList>> list_keys(std::span<const KeyQuery> queries) override;
  Result<std::vector<Result<ChangeReply>>> retry_each(std::span<const JobId> jobs) override;  // pg_retries.cc
  Result<int> retry_many(const RetryMany& request) override;                                  // pg_retries.cc
  // pg_leases.cc
  Result<std::vector<std::optional<LeasedJob>>> leased(std::span<const Lease> leases) override;
  Result<std::vector<LeaseResult>> finish_leased(std::span<const FinishRequest> requests,
                                                 const std::string& node) override;
  Result<std::vector<LeaseResult>> extend(std::span<const Extension> extensions) override;

 private:
  Status reserve_ids(std::size_t n);  // makes sequence_ hold at least n numbers
  // create() in one transaction. `most_tries`: how often it is tried, because other transactions may hold the jobs'
  // keys.
  Result<std::vector<CreateReply>> create_at_once(std::span<const NewJob> jobs, CreateMode mode, int most_tries);
  Result<std::vector<JobId>> draw_ids(std::span<const NewJob> jobs);  // from sequence_, one per job
  // After a commit whose answer was lost: looks for the jobs that it would have created. True: all exist, and `replies`
  // are completed from them. False: nothing was committed, a type refused its job, or an id is that of another job by
  // now; create() stays in doubt then.
  Result<bool> find_created(std::span<const NewJob> jobs, const std::vector<JobId>& created,
                            std::vector<CreateReply>& replies);
  using CancelReplies = std::unordered_map<JobId, CancelReply>;
  // Cancels the jobs and adds their replies, except for locked rows. `unanswered`: jobs without a reply. REQUIRES: it
  // is sorted.
  Status cancel_unanswered(std::span<const JobId> unanswered, sql::LockPolicy policy, CancelReplies& replies);
  // As cancel_unanswered(), in parts. Jobs whose rows the database refuses to write are answered so; `refusal` gets the
  // last Error.
  Status cancel_in_parts(std::span<const JobId> unanswered, sql::LockPolicy policy, CancelReplies& replies,
                         std::optional<Error>& refusal);
  // pg_retries.cc: makes dead jobs pending, and adds them to `revival`, as those that the database refuses. Skips jobs
  // that another transaction has locked or whose key it holds, and jobs whose shard is write-frozen (moving). A call
  // that meets too many held keys or refused jobs does not reach all jobs; the next one begins with the others.
  // REQUIRES: the ids ascend.
  struct Revival;
  Status revive(std::vector<JobId> jobs, Revival& revival);
  // pg_retries.cc: executes `statement`, which revives the jobs of `ids` or fails, in a transaction of its own that
  // waits kKeyLockWait for a lock.
  Result<pqxx::result> revive_part(std::span<const JobId> ids,
                                   const std::function<pqxx::result(pqxx::work&)>& statement);
  class LeaseWrite;  // pg_leases.cc: one call of finish_leased() or extend()

  Session& session_;
  const int shards_;
  // revive() begins with the first id that is not smaller, and wraps around to the smallest.
  JobId next_revival_ = 0;
  // Unused numbers for job ids, drawn from the database's sequence in blocks of block_ (32..4096: about the use of half
  // a second). After half a second they are dropped, because ids should follow the order of creation.
  std::deque<std::int64_t> sequence_;
  std::chrono::steady_clock::time_point drawn_at_{};  // when the first number of sequence_ was drawn
  std::size_t block_ = 0;
  // Session::connections() when the numbers were drawn; 0: they must not be used. After a new connection new numbers
  // are drawn, because it may reach another server, whose sequence gives the same numbers again.
  std::uint64_t drawn_on_ = 0;
};

}  // namespace tocsin

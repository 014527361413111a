// PgBulkStore: stores and runs bulk operations (cancel, reschedule, run or retry of all jobs that match a filter).
// Implements BulkStore, which says what each call does and its Errors (bulk/bulk_store.h). BulkService has one for
// each database. The tables are in section 14 of the baseline migration. Thread: owner only.
#pragma once

#include <set>
#include <vector>

#include "base/part_size.h"
#include "bulk/bulk_store.h"
#include "postgres/session.h"
#include "tocsin/job.h"

namespace tocsin {

class PgBulkStore final : public BulkStore {
 public:
  // `shards`: the installation's shard count. REQUIRES: config.has_pinned_plans = false, because a batch may read
  // 20,000 rows in the order of job_id.
  PgBulkStore(const SessionConfig& config, int shards) : session_(config), shards_(shards) {}

  // In the control database only.
  Result<std::optional<std::string>> placement() override;
  Result<std::optional<Bulk>> start(const BulkRequest& request, std::int64_t matched, NodeId node, Duration lease,
                                    const std::string& placement) override;
  Result<std::optional<Bulk>> find(std::int64_t bulk_id) override;
  Result<std::vector<Bulk>> list(int limit) override;
  Result<std::optional<Bulk>> request_stop(std::int64_t bulk_id) override;
  Result<std::optional<Bulk>> take_over(NodeId node, Duration lease) override;
  Result<std::optional<Bulk>> take_over(std::int64_t bulk_id, NodeId node, Duration lease) override;
  Result<std::optional<Bulk>> keep(std::int64_t bulk_id, NodeId node, std::int64_t changed, Duration lease) override;
  Result<bool> finish(const Bulk& bulk, NodeId node) override;

  // In every database.
  Result<std::int64_t> count(const BulkRequest& request) override;
  Result<BulkBatch> progress(std::int64_t bulk_id) override;
  Result<std::int64_t> close(std::int64_t bulk_id) override;
  Result<BulkBatch> run_batch(const Bulk& bulk, int limit) override;

 private:
  struct Page;
  struct Try {
    Result<BulkBatch> batch;
    std::vector<JobId> changed;  // by the batch; of an Error the jobs whose change failed, none if something else did
    bool is_second_visit = false;
  };
  // A batch as run_batch() describes it, which fails as a whole. `left_out`: jobs that are treated as if another
  // transaction had locked them.
  Try try_batch(const Bulk& bulk, int limit, const std::set<JobId>& left_out);
  // Both take_over() calls. `bulk_id` nullopt: any bulk whose lease has ended.
  Result<std::optional<Bulk>> take_over_idle(std::optional<std::int64_t> bulk_id, NodeId node, Duration lease);
  // The next jobs after the id `after` that match, in order of id, `limit` at most. `matches`: of matches_now().
  Page read_page(pqxx::transaction_base& tx, const Bulk& bulk, const std::string& matches, JobId after,
                 int limit) const;
  // The SQL condition that a row j is a job that the bulk changes.
  std::string matches_now(const Bulk& bulk, pqxx::transaction_base& tx) const;
  // The filter as an SQL condition on rows j: of the live table (`is_live`), otherwise of the dead jobs in history.
  std::string conditions(const BulkFilter& filter, pqxx::transaction_base& tx, bool is_live) const;

  Session session_;
  const int shards_;
  PartSize part_size_;  // of the jobs in a batch
  // Jobs of the bulk `refused_bulk_` that were refused alone since its last change. Behind locked jobs one may be
  // refused several times before it is left out.
  std::int64_t refused_bulk_ = 0;
  std::set<JobId> refused_in_a_row_;
};

}  // namespace tocsin

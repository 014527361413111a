#include "postgres/job_rows.h"

#include "postgres/queries.h"
#include "postgres/text.h"

namespace tocsin {

std::unordered_map<JobId, Job> find_jobs(Session& session, pqxx::transaction_base& tx, std::span<const JobId> ids) {
  PgArray shards, jobs;
  for (JobId id : ids) {
    shards.add(shard_of(id));
    jobs.add(id);
  }
  std::unordered_map<JobId, Job> found;
  for (const auto& row : tx.exec_prepared(session.prepared("find", sql::find), shards.take(), jobs.take())) {
    Job job = job_from_row(row);
    found.insert_or_assign(job.job_id, std::move(job));
  }
  return found;
}

std::vector<Job> find_jobs_of(Session& session, pqxx::transaction_base& tx, const std::string& biz_id, Shard shard,
                              int limit) {
  const auto& name = session.prepared("find_jobs_of", [] {
    return "SELECT " + std::string(kLiveColumns) +
           " FROM tocsin.job_live j WHERE j.shard = $2::smallint AND j.biz_id = $1::text UNION ALL SELECT " +
           kHistoryColumns + " FROM tocsin.job_history j WHERE j.biz_id = $1::text LIMIT $3::integer";
  });
  std::vector<Job> jobs;
  for (const auto& row : tx.exec_prepared(name, biz_id, static_cast<int>(shard), limit))
    jobs.push_back(job_from_row(row));
  return jobs;
}

}  // namespace tocsin

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
  for (const auto& row : exec(tx, session.prepared("find", sql::find), shards.literal(), jobs.literal())) {
    Job job = job_from_row(row);
    found.insert_or_assign(job.job_id, std::move(job));
  }
  return found;
}

}  // namespace tocsin

// Reads rows into Jobs, and finds live or finished jobs by id. The stores of src/postgres call these functions in the
// `work` of a Session (postgres/session.h), on its thread. Both throw what libpqxx throws.
#pragma once

#include <pqxx/pqxx>
#include <span>
#include <unordered_map>

#include "postgres/session.h"
#include "tocsin/job.h"

namespace tocsin {

// Reads the columns of sql/parts/live_columns.sql or history_columns.sql, which begin at column `first` of the row.
// Job::biz_type stays empty: rows have the type_id only.
Job job_from_row(const pqxx::row& row, int first = 0);

// Returns the jobs that exist in this database, by the requested id. A requested id may be an alias: SQL created a job
// for another database through the outbox, but its idempotency key already had a job. Then the result is that job, and
// Job::job_id differs from the requested id.
std::unordered_map<JobId, Job> find_jobs(Session& session, pqxx::transaction_base& tx, std::span<const JobId> ids);

}  // namespace tocsin

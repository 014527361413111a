// Reads a row into a Job, and looks up jobs by id, live or finished. Stores call this in the `work` of a Session, on
// its thread; both throw what libpqxx throws.
#pragma once

#include <pqxx/pqxx>
#include <span>
#include <unordered_map>

#include "postgres/session.h"
#include "tocsin/job.h"

namespace tocsin {

// The job in a row that has, from column `first` on, the columns of sql/parts/live_columns.sql or history_columns.sql.
// Job::biz_type stays empty: rows have the type_id.
Job job_from_row(const pqxx::row& row, int first = 0);

// The jobs that exist here, by the id asked for. The id of an outbox entry that became no job, because its idempotency
// key had one already, stands for that one: then Job::job_id differs.
std::unordered_map<JobId, Job> find_jobs(Session& session, pqxx::transaction_base& tx, std::span<const JobId> ids);

}  // namespace tocsin

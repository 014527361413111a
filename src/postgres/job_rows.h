// Reads a row into a Job, and looks up jobs by id, live or finished.
#pragma once

#include <pqxx/pqxx>
#include <span>
#include <unordered_map>

#include "postgres/session.h"
#include "tocsin/job.h"

namespace tocsin {

// The job in a row that begins, at column `first`, with the columns of sql/parts/live_columns.sql or
// history_columns.sql. Job::biz_type stays empty.
Job job_from_row(const pqxx::row& row, int first = 0);

// The jobs of `ids` that exist, by the id asked for. The id of an outbox entry whose idempotency key had a job already
// finds that job, whose own id differs. Call inside a Session's `work`: throws what libpqxx throws.
std::unordered_map<JobId, Job> find_jobs(Session& session, pqxx::transaction_base& tx, std::span<const JobId> ids);

}  // namespace tocsin

// Looks up jobs by id, live or finished; shared by PgJobDesk and PgReportStore.
#pragma once

#include <pqxx/pqxx>
#include <span>
#include <unordered_map>

#include "postgres/session.h"
#include "tocsin/job.h"

namespace tocsin {

// The jobs of `ids` that exist, by the id asked for. The id of an outbox entry whose idempotency key had a job already
// finds that job, whose own id differs.
std::unordered_map<JobId, Job> find_jobs(Session& session, pqxx::transaction_base& tx, std::span<const JobId> ids);

}  // namespace tocsin

// Looking up jobs by id, live or finished: shared by the desk and the reports.
#pragma once

#include <pqxx/pqxx>
#include <span>
#include <unordered_map>

#include "postgres/session.h"
#include "tocsin/job.h"

namespace tocsin {

// Those of `ids` that exist, by the id that was asked for. An id of an outbox entry whose idempotency key another job
// had finds that job, which has another id.
std::unordered_map<JobId, Job> find_jobs(Session& session, pqxx::transaction_base& tx, std::span<const JobId> ids);

}  // namespace tocsin

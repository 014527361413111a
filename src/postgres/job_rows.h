// Looking up jobs by id, live or finished: shared by the desk and the reports.
#pragma once

#include <pqxx/pqxx>
#include <span>
#include <unordered_map>

#include "postgres/session.h"
#include "tocsin/job.h"

namespace tocsin {

// Those of `ids` that exist, in one snapshot.
std::unordered_map<JobId, Job> find_jobs(Session& session, pqxx::transaction_base& tx, std::span<const JobId> ids);

// Every job of a business key, live and finished, in no order; at most `limit`.
std::vector<Job> find_jobs_of(Session& session, pqxx::transaction_base& tx, const std::string& biz_id, Shard shard,
                              int limit);

}  // namespace tocsin

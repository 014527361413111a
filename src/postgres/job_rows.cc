#include "postgres/job_rows.h"

#include "postgres/text.h"

namespace tocsin {

namespace {

// In one snapshot of both homes.
std::unordered_map<JobId, Job> find_rows(Session& session, pqxx::transaction_base& tx, std::span<const JobId> ids) {
  PgArray shards, jobs;
  for (JobId id : ids) {
    shards.add(shard_of(id));
    jobs.add(id);
  }
  std::unordered_map<JobId, Job> found;
  for (const auto& row : exec(tx, session.prepared("find"), shards.literal(), jobs.literal())) {
    Job job = job_from_row(row);
    found.insert_or_assign(job.job_id, std::move(job));
  }
  return found;
}

}  // namespace

std::unordered_map<JobId, Job> find_jobs(Session& session, pqxx::transaction_base& tx, std::span<const JobId> ids) {
  auto found = find_rows(session, tx, ids);
  PgArray missing;
  bool is_any_missing = false;
  for (const JobId id : ids) {
    if (found.contains(id)) continue;
    missing.add(id);
    is_any_missing = true;
  }
  if (!is_any_missing) return found;
  std::unordered_map<JobId, JobId> stands_for;
  std::vector<JobId> existing;
  for (const auto& row : exec(tx, session.prepared("stands_for"), missing.literal())) {
    existing.push_back(row[1].as<JobId>());
    stands_for.emplace(row[0].as<JobId>(), existing.back());
  }
  if (existing.empty()) return found;
  const auto others = find_rows(session, tx, existing);
  for (const auto& [id, other] : stands_for)
    if (const auto it = others.find(other); it != others.end()) found.emplace(id, it->second);
  return found;
}

}  // namespace tocsin

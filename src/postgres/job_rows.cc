#include "postgres/job_rows.h"

#include <nlohmann/json.hpp>

#include "postgres/values.h"

namespace tocsin {

namespace {

std::string text_or_empty(const nlohmann::json& object, const char* name) {
  const auto it = object.find(name);
  return it != object.end() && it->is_string() ? it->get<std::string>() : "";
}

std::vector<JobError> errors_of(const pqxx::field& field) {
  std::vector<JobError> errors;
  if (field.is_null()) return errors;
  const auto list = nlohmann::json::parse(field.c_str(), field.c_str() + field.size());
  for (const auto& entry : list) {
    errors.push_back({text_or_empty(entry, "at"), text_or_empty(entry, "node"), entry.value("attempt", 0),
                      text_or_empty(entry, "message"), text_or_empty(entry, "started_at")});
  }
  return errors;
}

// In one snapshot of live and history tables.
std::unordered_map<JobId, Job> find_rows(Session& session, pqxx::transaction_base& tx, std::span<const JobId> ids) {
  const JobArrays keys(ids);
  std::unordered_map<JobId, Job> found;
  for (const auto& row : exec(tx, session.prepared("find"), keys.shards.literal(), keys.jobs.literal())) {
    Job job = job_from_row(row);
    found.insert_or_assign(job.job_id, std::move(job));
  }
  return found;
}

}  // namespace

Job job_from_row(const pqxx::row& row, int first) {
  const auto at = [&](int column) { return row[first + column]; };
  Job job;
  job.job_id = at(0).as<JobId>();
  job.biz_id = std::string(at(1).c_str(), at(1).size());
  job.type_id = at(2).as<TypeId>();
  job.status = static_cast<JobStatus>(at(3).as<int>());
  job.action_time = time_of(at(4));
  job.fire_at = time_of(at(5));
  job.attempts = at(6).as<int>();
  job.max_attempts = at(7).as<int>();
  job.attribute_json = optional_of<std::string>(at(8)).value_or("");
  job.idempotency_key = optional_of<std::string>(at(9));
  job.node = optional_of<std::string>(at(10));
  job.traceparent = optional_of<std::string>(at(11));
  job.gmt_create = time_of(at(12));
  job.gmt_modified = time_of(at(13));
  job.started_at = optional_of<WallTime>(at(14));
  job.finished_at = optional_of<WallTime>(at(15));
  job.errors = errors_of(at(16));
  job.late_from = optional_of<WallTime>(at(17));
  if (job.status == JobStatus::running) job.last_started_at = job.gmt_modified;
  if (job.status == JobStatus::done) {
    job.last_started_at = optional_of<WallTime>(at(18));
    if (!job.last_started_at) job.last_started_at = job.started_at;
  }
  return job;
}

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

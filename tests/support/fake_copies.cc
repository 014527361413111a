// What comes to the database in memory from other databases: copies of a moving shard, jobs of an outbox.
#include <algorithm>
#include <utility>

#include "support/fake_database.h"

namespace tocsin {

std::optional<FakeDatabase::Copy> FakeDatabase::copy_of(JobId job) const {
  if (const auto row = live_.find(job); row != live_.end()) return Copy{row->second, true};
  if (const auto row = history_.find(job); row != history_.end()) return Copy{row->second, false};
  return std::nullopt;
}

void FakeDatabase::put_copy(const Copy& copy) {
  const Job& job = copy.row.job;
  drop_copy(job.job_id);
  if (copy.is_live) return insert_live(copy.row);
  if (job.idempotency_key) keys_[{job.biz_id, job.type_id, *job.idempotency_key}] = job.job_id;
  history_[job.job_id] = copy.row;
}

void FakeDatabase::drop_copy(JobId job) {
  const auto copy = copy_of(job);
  if (!copy) return;
  if (copy->row.job.idempotency_key) keys_.erase(key_of(copy->row.job));
  if (copy->is_live)
    take_live(live_.find(job));
  else
    history_.erase(job);
}

void FakeDatabase::insert_with_id(JobId id, const std::string& biz_id, TypeId type, WallTime action_time,
                                  const std::optional<std::string>& key, WallTime created, WallTime now) {
  Row row;
  row.job.job_id = id;
  row.job.biz_id = biz_id;
  row.job.type_id = type;
  row.job.action_time = action_time;
  row.job.fire_at = std::max(action_time, now);
  row.job.max_attempts = 16;
  row.job.idempotency_key = key;
  row.job.gmt_create = created;
  row.job.gmt_modified = now;
  insert_live(std::move(row));
  tell(Change::Kind::created, live_.at(id), now);
}

std::optional<JobId> FakeDatabase::job_with_key(const std::string& biz_id, TypeId type,
                                                const std::optional<std::string>& key) const {
  if (!key) return std::nullopt;
  const auto found = keys_.find({biz_id, type, *key});
  return found == keys_.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace tocsin

// A standby that lacks the last commits takes over: what the checker forgets, and what it counts as lost.
#include "simulation/checker.h"

namespace tocsin {

void Checker::on_clock_step(DatabaseId database_id) {
  Watched& its = watched_[static_cast<std::size_t>(database_id)];
  ++its.clock_steps;
  its.clock_stepped = scheduler_.now();
  if (database_id == 0) shake_control();
}

void Checker::on_standby_lags(DatabaseId database_id) {
  Watched& its = watched_[static_cast<std::size_t>(database_id)];
  its.standby.clear();
  its.standby_at = changes_;
  for (const auto& [id, record] : records_)
    if (databases_.of(id).id == database_id) its.standby.emplace(id, record);
}

std::vector<JobId> Checker::on_failover(DatabaseId database_id) {
  Watched& its = watched_[static_cast<std::size_t>(database_id)];
  if (database_id == 0) shake_control();
  std::vector<JobId> unclaimed;
  for (auto it = records_.begin(); it != records_.end();) {
    auto& [id, record] = *it;
    const auto then = its.standby.find(id);
    if (databases_.of(id).id != database_id) {
      ++it;
    } else if (then == its.standby.end()) {
      lose_job(record);
      it = records_.erase(it);
    } else {
      if (record.token != 0 && record.token != then->second.token && !is_final(then->second.row.status))
        unclaimed.push_back(id);
      go_back(record, then->second);
      ++it;
    }
  }
  // Attempts whose claims are gone: their numbers will be given again. Their handlers may go on, or start yet.
  for (auto& [token, attempt] : attempts_) {
    if (databases_.of(attempt.job).id == database_id && attempt.is_leased)
      attempt.clock_steps = -1;  // extensions are gone
    if (databases_.of(attempt.job).id != database_id || attempt.change <= its.standby_at || attempt.is_lost) continue;
    attempt.is_lost = attempt.is_lost_to_standby = true;
    const auto record = records_.find(attempt.job);
    if (record != records_.end()) record->second.started.erase({attempt.life, attempt.number});
  }
  return unclaimed;
}

void Checker::lose_job(const Record& record) {
  const Job& job = record.row;
  lost_ids_.insert(job.job_id);  // another job may get it
  calm_bounds_.erase(job.job_id);
  may_overtake_.erase(job.job_id);
  overtaken_.erase(job.job_id);
  if (job.idempotency_key) keys_.erase({job.biz_id, job.type_id, *job.idempotency_key});
  for (auto& [token, attempt] : attempts_)
    if (attempt.job == job.job_id) attempt.is_lost = attempt.is_lost_to_standby = true;
  if (record.is_acknowledged) lose(losses_.created, "I1", "job " + std::to_string(job.job_id) + " was acknowledged");
}

void Checker::go_back(Record& now, const Record& then) {
  const std::string name = "job " + std::to_string(now.row.job_id);
  const bool is_back = is_final(now.row.status) && !is_final(then.row.status);
  // Of a job, too, that was dropped, revived and then cancelled: it is only dropped again.
  const bool is_cancel_lost = now.is_cancel_acknowledged && then.row.status != JobStatus::cancelled;
  if (is_cancel_lost)
    lose(losses_.cancelled, "I3", "the cancel of " + name + " was acknowledged");
  else if (is_back)
    ++losses_.outcomes;
  if (now.token != then.token) {
    if (now.token != 0) ++losses_.claims;
    // The claim that is valid again was over: no outcome of it will come.
    const auto older = attempts_.find(then.token);
    if (older != attempts_.end()) older->second.is_orphan = true;
  }
  now.row = then.row;
  now.token = then.token;
  now.life = then.life;
  now.effects = then.effects;
  now.is_hastened = then.is_hastened;
  if (is_cancel_lost) now.is_cancel_acknowledged = false;
}

void Checker::lose(std::int64_t& count, const char* promise, const std::string& what) {
  ++count;
  trace_.line(scheduler_.now(), "lost: " + what);
  if (!may_lose_) fail(promise, what + ", and a standby took over that had not heard of it");
}

}  // namespace tocsin

// What callers ask of the database in memory: create, cancel, change.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/assert.h"
#include "core/requested_time.h"
#include "support/fake_database.h"

namespace tocsin {

using Kind = FakeDatabase::Change::Kind;

namespace {

WallTime instant(const When& when, WallTime now) {
  TOCSIN_ASSERT(when.at.has_value() != when.in.has_value());
  return when.at ? *when.at : now + *when.in;
}

// As jsonb would store it: spaces and the order of members do not matter.
std::string normal(const std::string& json) { return json.empty() ? json : nlohmann::json::parse(json).dump(); }

std::string body_of(const NewJob& job) {
  const std::string body = requested_time(job.when) + '\n' + normal(job.attribute_json) + '\n';
  return job.has_own_max_attempts ? body + std::to_string(job.max_attempts) : body;
}

bool wins(OnConflict rule, WallTime asked, WallTime stored) {
  return rule == OnConflict::replace || (rule == OnConflict::earliest ? asked < stored : asked > stored);
}

Error locked_row(JobId job) {
  return {ErrorCode::conflict, "job " + std::to_string(job) + " is locked by another session", ""};
}

}  // namespace

CreateReply FakeDatabase::answer_with_existing(const NewJob& job, Live row, Undo& undo, WallTime now) {
  CreateReply reply;
  reply.kind = CreateReply::Kind::existing;
  const auto answer = [&](CreateReply::Kind kind, const Job& existing) {
    reply = {kind, existing.job_id, existing.action_time, existing.fire_at, existing.gmt_create, existing};
    return reply;
  };
  const JobId id = keys_.at({job.biz_id, job.type_id, *job.idempotency_key});
  const Row& stored = row != live_.end() ? row->second : history_.at(id);
  if (job.on_conflict == OnConflict::reject) return answer(CreateReply::Kind::rejected, stored.job);
  if (job.on_conflict == OnConflict::keep)
    return answer(stored.body == body_of(job) ? CreateReply::Kind::existing : CreateReply::Kind::key_reused,
                  stored.job);
  if (stored.job.status != JobStatus::pending) return answer(CreateReply::Kind::not_pending, stored.job);
  const WallTime asked = instant(job.when, now);
  if (!wins(job.on_conflict, asked, stored.job.action_time)) return answer(CreateReply::Kind::existing, stored.job);
  undo.emplace_back(id, stored);
  edit_live(row, [&](Row& r) {
    r.job.action_time = asked;
    r.job.fire_at = std::max(asked, now);
    r.job.started_at.reset();
    r.job.late_from = asked < now ? std::optional(now) : std::nullopt;
    r.job.attribute_json = normal(job.attribute_json);
    r.job.attempts = 0;
    r.job.max_attempts = job.max_attempts;
    r.job.gmt_modified = now;
    r.body = body_of(job);
  });
  return answer(CreateReply::Kind::updated, row->second.job);
}

// By another open transaction: the key that it creates a job with, or the job that is to be changed.
bool FakeDatabase::is_held(const NewJob& job) const {
  if (!job.idempotency_key) return false;
  if (held_keys_.contains(key_of(job))) return true;
  const auto key = keys_.find(key_of(job));
  return job.on_conflict != OnConflict::keep && key != keys_.end() && is_locked(key->second);
}

// Of a job whose key exists already nothing is created.
const Error* FakeDatabase::refusal_of_new(const NewJob& job) const {
  const auto why = refused_new_.find(job.biz_id);
  return why == refused_new_.end() || (job.idempotency_key && keys_.contains(key_of(job))) ? nullptr : &why->second;
}

void FakeDatabase::give_id(JobId finished, JobId id) {
  auto record = history_.extract(finished);
  record.key() = record.mapped().job.job_id = id;
  history_.insert(std::move(record));
}

void FakeDatabase::begin_ids_anew() {
  last_sequence_ = 0;
  for (const auto* table : {&live_, &history_})
    for (const auto& [id, row] : *table) last_sequence_ = std::max(last_sequence_, id / kMaxShards);
}

CreateReply FakeDatabase::create_one(const NewJob& job, Undo& undo, WallTime now) {
  if (job.idempotency_key && !bugs.create_ignores_key)
    if (const auto key = keys_.find({job.biz_id, job.type_id, *job.idempotency_key}); key != keys_.end())
      return answer_with_existing(job, live_.find(key->second), undo, now);
  if (is_removed(job.type_id)) return {CreateReply::Kind::type_removed, 0, {}, {}, {}, {}};
  Row row;
  row.job.job_id = make_job_id(++last_sequence_, shard_of(job.biz_id, shards_));
  row.job.biz_id = job.biz_id;
  row.job.type_id = job.type_id;
  row.job.action_time = instant(job.when, now);
  row.job.fire_at = std::max(row.job.action_time, now);
  row.job.max_attempts = job.max_attempts;
  row.job.attribute_json = normal(job.attribute_json);
  row.job.idempotency_key = job.idempotency_key;
  row.job.traceparent = job.traceparent;
  row.job.gmt_create = row.job.gmt_modified = now;
  row.body = body_of(job);
  const CreateReply reply{CreateReply::Kind::created, row.job.job_id, row.job.action_time, row.job.fire_at, now, {}};
  undo.emplace_back(reply.job_id, std::nullopt);
  insert_live(std::move(row));
  return reply;
}

void FakeDatabase::roll_back(const Undo& undo) {
  for (auto it = undo.rbegin(); it != undo.rend(); ++it) {
    const Row gone = take_live(live_.find(it->first));
    if (it->second) {
      insert_live(*it->second);
    } else if (gone.job.idempotency_key) {
      keys_.erase({gone.job.biz_id, gone.job.type_id, *gone.job.idempotency_key});
    }
  }
}

Result<std::vector<CreateReply>> FakeDatabase::create(const std::vector<NewJob>& jobs, CreateMode mode, WallTime now) {
  TOCSIN_ASSERT(jobs.size() <= 10'000);
  Undo undo;
  std::vector<CreateReply> replies;
  const bool is_by_itself =
      (mode == CreateMode::each_by_itself && jobs.size() > 1) || mode == CreateMode::each_but_held;
  int held = 0;
  for (const NewJob& job : jobs) {
    if (lives_here && !lives_here(shard_of(job.biz_id, shards_))) {
      roll_back(undo);
      return Error{ErrorCode::moved, "the shard of " + job.biz_id + " lives elsewhere", ""};
    }
    const bool is_reached = mode != CreateMode::each_but_held || held < ClientStore::kMostHeldTries;
    if (is_held(job) || !is_reached) {
      if (waits_for_keys(mode)) ++lock_waits;
      if (is_by_itself) {
        ++held;
        replies.push_back({CreateReply::Kind::locked, 0, {}, {}, {}, {}});
        continue;
      }
      roll_back(undo);
      return Error{ErrorCode::conflict, "another session holds the key of " + job.biz_id, ""};
    }
    const Error* const why = refusal_of_new(job);
    if (why && !is_by_itself) {
      roll_back(undo);
      return *why;
    }
    if (!why) {
      replies.push_back(create_one(job, undo, now));
      continue;
    }
    const bool is_invalid = why->code == ErrorCode::invalid;
    replies.push_back(
        {is_invalid ? CreateReply::Kind::invalid : CreateReply::Kind::unwritable, 0, {}, {}, {}, {}, why->message});
  }
  const auto refused = std::ranges::find_if(replies, &CreateReply::is_refused);
  if (is_undone_by_refusal(mode) && refused != replies.end()) {
    if (bugs.half_rollback && !undo.empty()) undo.erase(undo.begin());
    roll_back(undo);
    return replies;
  }
  for (const auto& [id, before] : undo) tell(before ? Kind::replaced : Kind::created, live_.at(id), now);
  return replies;
}

CancelReply FakeDatabase::cancel_one(JobId id, WallTime now) {
  if (is_locked(id) && live_.contains(id)) return {CancelReply::Kind::locked, id, {}};
  if (const auto row = live_.find(id); row != live_.end()) {
    if (row->second.job.status == JobStatus::running && !bugs.cancels_running)
      return {CancelReply::Kind::running, id, row->second.job};
    if (refuses(id)) return {CancelReply::Kind::refused, id, {}};
    to_history(row, JobStatus::cancelled, Kind::cancelled, 0, now);
    return {CancelReply::Kind::cancelled, id, history_.at(id).job};
  }
  if (const auto row = history_.find(id); row != history_.end())
    return {CancelReply::Kind::finished, id, row->second.job};
  return {CancelReply::Kind::not_found, id, {}};
}

Result<std::vector<CancelReply>> FakeDatabase::cancel(const std::vector<JobId>& jobs, WallTime now) {
  std::vector<CancelReply> replies;
  for (const JobId id : jobs) replies.push_back(cancel_one(id, now));
  const auto is_refused = [](const CancelReply& reply) { return reply.kind == CancelReply::Kind::refused; };
  if (!replies.empty() && std::ranges::all_of(replies, is_refused)) return *refusal(jobs.back());
  return replies;
}

Result<CancelAllReply> FakeDatabase::cancel_all(const std::string& biz_id, std::optional<TypeId> type, WallTime now) {
  const auto is_meant = [&](const Row& row) { return row.job.biz_id == biz_id && (!type || row.job.type_id == *type); };
  std::vector<JobId> jobs, running, ended;
  for (const auto& [id, row] : live_)
    if (is_meant(row)) (row.job.status == JobStatus::pending ? jobs : running).push_back(id);
  for (const auto& [id, row] : history_)
    if (row.job.biz_id == biz_id) ended.push_back(id);
  std::ranges::sort(jobs);
  std::ranges::sort(running);
  std::ranges::sort(ended, std::greater());
  CancelAllReply reply;
  reply.has_more_finished = ended.size() > ClientStore::kMostNamed;
  if (reply.has_more_finished) ended.resize(ClientStore::kMostNamed);
  std::erase_if(ended, [&](JobId id) { return !is_meant(history_.at(id)); });
  jobs.insert(jobs.end(), running.begin(), running.end());
  reply.has_more = jobs.size() >= ClientStore::kMostOfOneKey;
  if (reply.has_more) jobs.resize(ClientStore::kMostOfOneKey);
  jobs.insert(jobs.end(), ended.begin(), ended.end());
  auto cancelled = cancel(jobs, now);
  if (!cancelled) return cancelled.error();
  reply.jobs = std::move(*cancelled);
  return reply;
}

Result<KeyCancelReply> FakeDatabase::cancel_key(const KeyCancel& key, WallTime now) {
  const auto is_of_type = [&](const Row& row) { return !key.type || row.job.type_id == *key.type; };
  KeyCancelReply reply;
  std::vector<JobId> live;
  for (const auto& [id, row] : live_)
    if (row.job.biz_id == key.biz_id) live.push_back(id);
  for (const auto& [id, row] : history_)
    if (row.job.biz_id == key.biz_id) reply.finished.push_back(id);
  std::ranges::sort(reply.finished, std::greater());
  reply.has_more_finished = reply.finished.size() > ClientStore::kMostNamed;
  if (reply.has_more_finished) reply.finished.resize(ClientStore::kMostNamed);
  std::erase_if(reply.finished, [&](JobId id) { return !is_of_type(history_.at(id)); });
  reply.is_too_many = live.size() > ClientStore::kMostOfOneKeyTogether;
  if (reply.is_too_many) return reply;
  std::ranges::sort(live);
  for (const JobId id : live) {
    const Row& row = live_.at(id);
    const bool is_cancelled = is_of_type(row) && row.job.status == JobStatus::pending && !is_locked(id);
    if (const auto why = refusal(id); why && is_cancelled) return *why;
  }
  for (const JobId id : live) {
    const Row& row = live_.at(id);
    if (!is_of_type(row)) continue;
    const bool is_pending = row.job.status == JobStatus::pending;
    const bool is_cancelled = is_pending && cancel_one(id, now).kind == CancelReply::Kind::cancelled;
    (!is_pending ? reply.running : is_cancelled ? reply.cancelled : reply.locked).push_back(id);
  }
  return reply;
}

ChangeBatchReply FakeDatabase::change_together(const ChangeBatch& batch, WallTime now) {
  ChangeBatchReply reply;
  std::map<JobId, CancelReply> told;
  for (const JobId id : batch.cancels) {
    const CancelReply mine = cancel_one(id, now);
    if (mine.kind == CancelReply::Kind::refused) {
      reply.cancels.emplace_back(*refusal(id));
      continue;
    }
    reply.cancels.push_back(bugs.answers_twice ? told.try_emplace(id, mine).first->second : mine);
  }
  for (const KeyCancel& key : batch.key_cancels) reply.key_cancels.push_back(cancel_key(key, now));
  for (const PendingChange& change : batch.changes) {
    const auto changed = change.when ? reschedule(change.job, *change.when, now) : run_now(change.job, now);
    const bool is_locked = !changed && changed.error().code == ErrorCode::conflict;
    reply.changes.push_back(is_locked ? ChangeReply{ChangeReply::Kind::locked, {}} : changed);
  }
  return reply;
}

std::vector<std::optional<Job>> FakeDatabase::find(const std::vector<JobId>& jobs) const {
  std::vector<std::optional<Job>> found;
  for (const JobId id : jobs) found.push_back(find(id));
  return found;
}

bool cut_to_bytes(std::vector<Job>& jobs) {
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    bytes += jobs[i].attribute_json.size();
    if (bytes < ClientStore::kMostBytesOfList) continue;
    jobs.resize(i + 1);
    return true;
  }
  return false;
}

std::vector<KeyList> FakeDatabase::list_keys(const std::vector<KeyQuery>& queries) const {
  std::vector<KeyList> lists;
  for (const KeyQuery& query : queries) {
    JobFilter filter;
    filter.biz_id = query.biz_id;
    filter.below = query.below;
    filter.limit = query.type ? ClientStore::kMostReadOfKey : query.limit;
    KeyList& found = lists.emplace_back();
    found.jobs = list(filter);
    if (query.type) {
      if (std::ssize(found.jobs) == ClientStore::kMostReadOfKey) found.unread_below = found.jobs.back().job_id;
      std::erase_if(found.jobs, [&](const Job& job) { return job.type_id != *query.type; });
    }
    if (query.type && std::ssize(found.jobs) >= query.limit) {
      found.jobs.resize(static_cast<std::size_t>(query.limit));
      found.unread_below.reset();
    }
    if (cut_to_bytes(found.jobs)) found.unread_below = found.jobs.back().job_id;
  }
  return lists;
}

ChangeReply FakeDatabase::unchanged(JobId id) const {
  const std::optional<Job> job = find(id);
  if (!job) return {};
  if (is_final(job->status)) return {ChangeReply::Kind::finished, job};
  return {job->status == JobStatus::running ? ChangeReply::Kind::running : ChangeReply::Kind::pending, job};
}

Result<ChangeReply> FakeDatabase::reschedule(JobId id, const When& when, WallTime now) {
  const auto row = live_.find(id);
  if (row == live_.end()) return unchanged(id);
  if (is_locked(id)) return locked_row(id);
  if (row->second.job.status != JobStatus::pending) return unchanged(id);
  if (const auto why = refusal(id)) return *why;
  edit_live(row, [&](Row& r) {
    r.job.action_time = instant(when, now);
    r.job.fire_at = std::max(r.job.action_time, now);
    r.job.started_at.reset();
    r.job.late_from = r.job.action_time < now ? std::optional(now) : std::nullopt;
    r.job.gmt_modified = now;
  });
  tell(Kind::rescheduled, row->second, now);
  return ChangeReply{ChangeReply::Kind::changed, row->second.job};
}

Result<ChangeReply> FakeDatabase::run_now(JobId id, WallTime now) {
  const auto row = live_.find(id);
  if (row == live_.end()) return unchanged(id);
  if (is_locked(id)) return locked_row(id);
  if (row->second.job.status != JobStatus::pending) return unchanged(id);
  if (const auto why = refusal(id)) return *why;
  edit_live(row, [&](Row& r) { r.job.fire_at = r.job.gmt_modified = now; });
  tell(Kind::hastened, row->second, now);
  return ChangeReply{ChangeReply::Kind::changed, row->second.job};
}

Result<ChangeReply> FakeDatabase::retry(JobId id, WallTime now) {
  const auto row = history_.find(id);
  if (row == history_.end() || row->second.job.status != JobStatus::dead) return unchanged(id);
  if (is_removed(row->second.job.type_id)) return ChangeReply{ChangeReply::Kind::type_removed, row->second.job};
  if (is_locked(id)) return ChangeReply{ChangeReply::Kind::locked, row->second.job};
  if (const auto why = refusal(id)) return *why;
  if (live_.contains(id)) {
    free_id(id, now);
    return unchanged(id);
  }
  revive(id, now, now);
  return ChangeReply{ChangeReply::Kind::changed, live_.at(id).job};
}

Result<int> FakeDatabase::retry_many(const ClientStore::RetryMany& request, WallTime now) {
  std::vector<std::pair<WallTime, JobId>> dead;
  std::optional<Error> refused;
  for (const auto& [id, row] : history_) {
    const Job& job = row.job;
    if (job.status != JobStatus::dead || job.type_id != request.type_id || is_removed(job.type_id)) continue;
    if ((request.from && *job.finished_at < *request.from) || (request.to && *job.finished_at >= *request.to)) continue;
    if (refuses(id))
      refused = refusal(id);
    else
      dead.emplace_back(*job.finished_at, id);
  }
  if (dead.empty() && refused) return *refused;
  std::ranges::sort(dead);
  if (static_cast<int>(dead.size()) > request.limit) dead.resize(static_cast<std::size_t>(request.limit));
  const Duration gap{request.rate_per_s ? static_cast<std::int64_t>(1e6 / *request.rate_per_s) : 0};
  int revived = 0;
  for (std::size_t i = 0; i < dead.size(); ++i) {
    const JobId id = dead[i].second;
    if (live_.contains(id)) {
      free_id(id, now);
      continue;
    }
    revive(id, now + static_cast<std::int64_t>(i) * gap, now);
    ++revived;
  }
  return revived;
}

// Leases --------------------------------------------------------------------------------------------------------------

bool FakeDatabase::holds(const Lease& lease, WallTime now) const {
  const auto row = live_.find(lease.job_id);
  return row != live_.end() && row->second.job.status == JobStatus::running &&
         (row->second.token == lease.token || bugs.finish_ignores_token) &&
         (row->second.job.fire_at > now || bugs.lease_outlives_its_end);
}

std::vector<std::optional<Duration>> FakeDatabase::leases_left(const std::vector<Lease>& leases, WallTime now) const {
  std::vector<std::optional<Duration>> reply;
  for (const Lease& lease : leases) {
    auto& left = reply.emplace_back();
    if (holds(lease, now)) left = live_.at(lease.job_id).job.fire_at - now;
  }
  return reply;
}

std::vector<std::optional<LeasedJob>> FakeDatabase::leased(const std::vector<Lease>& leases, WallTime now) const {
  std::vector<std::optional<LeasedJob>> reply;
  for (const Lease& lease : leases) {
    auto& job = reply.emplace_back();
    if (!holds(lease, now)) continue;
    const Job& row = live_.at(lease.job_id).job;
    job = LeasedJob{row.type_id, row.attempts, row.max_attempts};
  }
  return reply;
}

Result<std::vector<LeaseResult>> FakeDatabase::finish_leased(const std::vector<FinishRequest>& requests,
                                                             const std::string& node, WallTime now) {
  std::vector<LeaseResult> results;
  for (const FinishRequest& request : requests) {
    LeaseResult& result = results.emplace_back();
    if (!holds({request.job_id, request.token}, now)) continue;
    const TypeId type = live_.at(request.job_id).job.type_id;
    if (const auto why = refusal(request.job_id); why && !is_locked(request.job_id)) {
      result = {LeaseReply::refused, 0, why->message};
      continue;
    }
    const FinishReply reply = finish_one(request, node, now);
    if (reply == FinishReply::applied) result = {LeaseReply::applied, type};
    if (reply == FinishReply::busy) result.kind = LeaseReply::busy;
  }
  return results;
}

Result<std::vector<LeaseResult>> FakeDatabase::extend(const std::vector<Extension>& extensions, WallTime now) {
  std::vector<LeaseResult> replies;
  for (const auto& [lease, ttr] : extensions) {
    LeaseResult& reply = replies.emplace_back();
    if (!holds(lease, now)) continue;
    if (is_locked(lease.job_id)) {
      reply.kind = LeaseReply::busy;
      continue;
    }
    if (const auto why = refusal(lease.job_id)) {
      reply = {LeaseReply::refused, 0, why->message};
      continue;
    }
    const auto row = live_.find(lease.job_id);
    reply = {LeaseReply::applied, row->second.job.type_id};
    edit_live(row, [this, ends = now + ttr](Row& r) { r.job.fire_at = not_before_deadline(r.job, ends); });
    tell(Kind::extended, row->second, now, lease.token);
  }
  return replies;
}

}  // namespace tocsin

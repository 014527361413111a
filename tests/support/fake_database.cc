#include "support/fake_database.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <limits>
#include <utility>

#include "base/assert.h"

namespace tocsin {

using Kind = FakeDatabase::Change::Kind;

namespace {

constexpr std::size_t kKeptErrors = 16;

std::string rfc3339(WallTime time) {
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(time - day);
  char text[40];
  std::snprintf(text, sizeof text, "%04d-%02u-%02uT%02d:%02d:%02d.%06dZ", static_cast<int>(date.year()),
                static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                static_cast<int>(clock.hours().count()), static_cast<int>(clock.minutes().count()),
                static_cast<int>(clock.seconds().count()), static_cast<int>(clock.subseconds().count()));
  return text;
}

void append_error(Job& job, WallTime at, const std::string& node, std::string message) {
  job.errors.push_back({rfc3339(at), node, job.attempts, std::move(message),
                        job.status == JobStatus::running ? rfc3339(job.gmt_modified) : std::string()});
  if (job.errors.size() > kKeptErrors) job.errors.erase(job.errors.begin());
}

std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

}  // namespace

FakeDatabase::FakeDatabase(WallClock clock, int shards) : clock_(std::move(clock)), shards_(shards) {
  permits.total_of = [this](TypeId id, Limit limit) {
    for (const auto& [name, type] : types_)
      if (type.type_id == id) return permits_of(type, limit);
    return 0;
  };
}

// Rows ----------------------------------------------------------------------------------------------------------------

void FakeDatabase::insert_live(Row row) {
  const Job& job = row.job;
  due_.emplace(Lane{job.shard(), job.type_id}, job.fire_at, job.job_id);
  if (job.idempotency_key) keys_[{job.biz_id, job.type_id, *job.idempotency_key}] = job.job_id;
  const JobId id = job.job_id;
  const bool is_new = live_.emplace(id, std::move(row)).second;
  TOCSIN_ASSERT(is_new && !history_.contains(id));
}

FakeDatabase::Row FakeDatabase::take_live(Live row) {
  const Job& job = row->second.job;
  due_.erase({Lane{job.shard(), job.type_id}, job.fire_at, job.job_id});
  Row taken = std::move(row->second);
  live_.erase(row);
  return taken;
}

void FakeDatabase::edit_live(Live row, const std::function<void(Row&)>& edit) {
  Job& job = row->second.job;
  due_.erase({Lane{job.shard(), job.type_id}, job.fire_at, job.job_id});
  edit(row->second);
  due_.emplace(Lane{job.shard(), job.type_id}, job.fire_at, job.job_id);
  TOCSIN_ASSERT(job.status == JobStatus::running ? job.attempts > 0 || bugs.forgets_attempts : row->second.token == 0);
}

void FakeDatabase::to_history(Live row, JobStatus status, Kind kind, ClaimToken token, WallTime now) {
  Row finished = take_live(row);
  finished.job.status = status;
  finished.job.finished_at = finished.job.gmt_modified = now;
  if (status != JobStatus::done) finished.job.last_started_at.reset();
  finished.token = 0;
  const JobId id = finished.job.job_id;
  if (history_.contains(id)) free_id(id, now);
  tell(kind, history_[id] = std::move(finished), now, token);
}

// Two jobs had one id: the record of the one that ended first gets a fresh one.
void FakeDatabase::free_id(JobId id, WallTime now) {
  auto record = history_.extract(id);
  Job& job = record.mapped().job;
  record.key() = job.job_id = make_job_id(++last_sequence_, shard_of(id));
  append_error(job, now, job.node.value_or(""), "its id was " + std::to_string(id));
  if (job.idempotency_key) keys_[{job.biz_id, job.type_id, *job.idempotency_key}] = job.job_id;
  history_.insert(std::move(record));
}

void FakeDatabase::revive(JobId id, WallTime fire_at, WallTime now) {
  Row row = std::move(history_.at(id));
  history_.erase(id);
  row.token = 0;
  row.job.status = JobStatus::pending;
  row.job.attempts = 0;
  row.job.finished_at.reset();
  row.job.started_at.reset();
  row.job.fire_at = fire_at;
  row.job.late_from = std::max(row.job.action_time, fire_at);
  row.job.gmt_modified = now;
  insert_live(std::move(row));
  tell(Kind::revived, live_.at(id), now);
}

void FakeDatabase::tell(Kind kind, const Row& row, WallTime now, ClaimToken token, bool is_durable) {
  // Only claims, as a rule, do not wait for the disk; what does takes all before it along.
  if (kind != Kind::claimed && kind != Kind::claim_lost) unflushed_.clear();
  if (on_change) on_change({kind, row.job, token, now, is_durable});
}

// Failover ------------------------------------------------------------------------------------------------------------

FakeDatabase::Snapshot FakeDatabase::snapshot() const {
  return {last_sequence_, live_, history_, types_, members, permits};
}

void FakeDatabase::restore(const Snapshot& standby) {
  ++generation_;
  last_sequence_ = standby.last_sequence;
  live_.clear(), due_.clear(), keys_.clear(), locked_.clear(), unflushed_.clear();
  held_jobs_.clear(), held_keys_.clear(), held_types_.clear();
  history_ = standby.history, types_ = standby.types;
  members = standby.members, permits = standby.permits;
  for (const auto& [id, row] : history_)
    if (row.job.idempotency_key) keys_[{row.job.biz_id, row.job.type_id, *row.job.idempotency_key}] = id;
  for (const auto& [id, row] : standby.live) insert_live(row);
}

// JobStore ------------------------------------------------------------------------------------------------------------

void FakeDatabase::find_lanes(const LaneSearch& search, ScanReply& reply) const {
  constexpr std::int64_t kEntry = 64;  // bytes of a row in the index
  std::size_t walked = 0;
  for (const LaneSearch::Walk& walk : search.walks) {
    auto it = due_.lower_bound({Lane{walk.shard, walk.first}, WallTime::min(), 0});
    while (it != due_.end() && std::get<Lane>(*it) <= Lane{walk.shard, walk.last}) {
      const Lane lane = std::get<Lane>(*it);
      if (std::get<WallTime>(*it) < search.before && static_cast<int>(reply.lanes.size()) < search.limit)
        reply.lanes.push_back(lane);
      ++walked;
      it = due_.lower_bound({Lane{lane.shard, lane.type_id + 1}, WallTime::min(), 0});
    }
  }
  if (search.most_bytes == 0 || static_cast<std::int64_t>(due_.size()) * kEntry > search.most_bytes)
    reply.walked = walked;
}

ScanReply FakeDatabase::scan(const std::vector<ScanRange>& ranges, const LaneSearch& search, WriterMark mark,
                             WallTime now) {
  ScanReply reply;
  find_lanes(search, reply);
  reply.db_now = now;
  reply.connection = generation_;
  reply.began = now;
  const std::int64_t oldest = writers_.empty() ? last_number_ + 1 : *writers_.begin();
  reply.oldest_writer = std::min(oldest, last_number_ + 1 - writer_lag.count());  // one of the last while may be open
  if (mark == WriterMark::set) reply.next_writer = transaction_number(now);
  for (const ScanRange& range : ranges) {
    auto& rows = reply.rows.emplace_back();
    for (auto it = due_.upper_bound({range.lane, range.after, range.after_id}); it != due_.end(); ++it) {
      const auto& [lane, fire_at, id] = *it;
      if (lane != range.lane || fire_at >= range.before || static_cast<int>(rows.size()) >= range.limit) break;
      const Job& job = live_.at(id).job;
      const bool is_exhausted = job.status == JobStatus::running && job.attempts >= job.max_attempts;
      rows.push_back({{id, job.type_id, fire_at}, is_exhausted});
    }
  }
  return reply;
}

bool FakeDatabase::is_claimable(const Row& row, WallTime now) const {
  if (bugs.claims_any_status && row.job.status == JobStatus::running && row.job.attempts < row.job.max_attempts)
    return true;
  if (row.job.fire_at > now && !(bugs.claims_early && row.job.status == JobStatus::pending)) return false;
  return row.job.attempts < row.job.max_attempts || bugs.ignores_max_attempts;
}

ClaimToken FakeDatabase::token_of(JobId job, const ClaimTicket& ticket) const {
  const auto seed = bugs.same_token_again ? 0 : static_cast<std::uint64_t>(ticket.seed);
  const auto token = static_cast<ClaimToken>(mixed(mixed(static_cast<std::uint64_t>(job)) ^ seed));
  return token == 0 ? 1 : token;  // 0 stands for no token in this file
}

void FakeDatabase::begin_attempt(Row& row, const std::string& node, WallTime now) const {
  Job& job = row.job;
  if (job.status == JobStatus::running && !bugs.expiry_without_error)
    append_error(job, now, job.node.value_or(""), "lease expired");
  job.status = JobStatus::running;
  if (!bugs.forgets_attempts) ++job.attempts;
  job.node = node;
  job.gmt_modified = now;
  job.last_started_at = now;
  if (!job.started_at) job.started_at = now;
}

ClaimedJob FakeDatabase::claim_row(Live row, Duration ttr, const ClaimTicket& ticket, WallTime now) {
  const Row before = row->second;
  edit_live(row, [&](Row& r) {
    begin_attempt(r, ticket.node, now);
    r.token = token_of(r.job.job_id, ticket);
    r.job.fire_at = now + ttr;
  });
  unflushed_.emplace_back(row->second.token, before);
  tell(Kind::claimed, row->second, now, row->second.token, ticket.is_durable);
  if (ticket.is_durable) unflushed_.clear();
  ClaimedJob claimed{row->second.job, row->second.token, {}};
  claimed.fire_at_before = before.job.fire_at;
  return claimed;
}

std::vector<JobId> FakeDatabase::crash(WallTime now) {
  ++generation_;
  locked_.clear(), held_jobs_.clear(), held_keys_.clear(), held_types_.clear();
  const auto lost = std::move(unflushed_);
  unflushed_.clear();
  std::vector<JobId> jobs;
  for (auto claim = lost.rbegin(); claim != lost.rend(); ++claim) {
    const auto row = live_.find(claim->second.job.job_id);
    TOCSIN_ASSERT(row != live_.end() && row->second.token == claim->first);  // any later change would have flushed it
    edit_live(row, [&](Row& r) { r = claim->second; });
    tell(Kind::claim_lost, row->second, now, row->second.token);
    jobs.push_back(row->first);
  }
  return jobs;
}

FakeDatabase::Live FakeDatabase::find_candidate(const Candidate& job) {
  const auto row = live_.find(job.job_id);
  const bool is_another = row != live_.end() && row->second.job.type_id != job.type_id;
  return is_another ? live_.end() : row;
}

Claims FakeDatabase::claim(const std::vector<Candidate>& jobs, const std::vector<Duration>& ttr,
                           const ClaimTicket& ticket, WallTime now) {
  TOCSIN_ASSERT(jobs.size() == ttr.size() && jobs.size() <= 10'000);
  Claims claims;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const auto row = find_candidate(jobs[i]);
    if (row == live_.end() || is_locked(row->first) || !is_claimable(row->second, now)) continue;
    if (refused_claims_.contains(row->first))
      claims.refused.push_back({row->first, refused_row()});
    else
      claims.won.push_back(claim_row(row, ttr[i], ticket, now));
  }
  return claims;
}

std::vector<JobId> FakeDatabase::due_in(Lane lane, DueSpan span, int limit, WallTime now) const {
  std::vector<JobId> found;
  for (auto it = due_.upper_bound({lane, span.from, span.after_id}); it != due_.end() && std::get<Lane>(*it) == lane;
       ++it) {
    const auto& [_, fire_at, id] = *it;
    if (fire_at > std::min(now, span.to) || (static_cast<int>(found.size()) >= limit && !bugs.ignores_limit)) break;
    if (!is_locked(id) && is_claimable(live_.at(id), now)) found.push_back(id);
  }
  return found;
}

Result<Claims> FakeDatabase::claim_due(Lane lane, DueSpan span, int limit, Duration ttr, const ClaimTicket& ticket,
                                       WallTime now) {
  Claims claims;
  for (const JobId id : due_in(lane, span, limit, now)) {
    if (refused_claims_.contains(id)) {
      if (claims.won.empty()) return refused_row();
      claims.is_cut_short = true;
      break;
    }
    claims.won.push_back(claim_row(live_.find(id), ttr, ticket, now));
  }
  return claims;
}

std::vector<ClaimedJob> FakeDatabase::claimed_with(const ClaimTicket& ticket, const std::vector<JobId>& jobs) const {
  std::vector<ClaimedJob> won;
  for (const JobId id : std::set<JobId>(jobs.begin(), jobs.end())) {
    const auto row = live_.find(id);
    if (row == live_.end() || row->second.job.status != JobStatus::running || row->second.token != token_of(id, ticket))
      continue;
    won.push_back({row->second.job, row->second.token, {}});
  }
  return won;
}

std::vector<ClaimedJob> FakeDatabase::claimed_with(const ClaimTicket& ticket, Lane lane) const {
  std::vector<JobId> jobs;
  auto it = due_.upper_bound({lane, ticket.sent_after, std::numeric_limits<JobId>::max()});
  for (; it != due_.end() && std::get<Lane>(*it) == lane; ++it) jobs.push_back(std::get<JobId>(*it));
  return claimed_with(ticket, jobs);
}

Fired FakeDatabase::fire_row(Live row, const std::string& node, WallTime now) {
  edit_live(row, [&](Row& r) { begin_attempt(r, node, now); });
  const Job& job = row->second.job;
  const Fired fired{job.job_id, job.type_id, job.due_at(), *job.started_at};
  to_history(row, JobStatus::done, Kind::fired, 0, now);
  return fired;
}

std::vector<Fired> FakeDatabase::fire(const std::vector<Candidate>& jobs, const std::string& node, WallTime now) {
  std::vector<Fired> fired;
  for (const Candidate& job : jobs) {
    const auto row = find_candidate(job);
    if (row == live_.end() || is_locked(row->first) || !is_claimable(row->second, now)) continue;
    fired.push_back(fire_row(row, node, now));
  }
  return fired;
}

Result<std::vector<Fired>> FakeDatabase::fire_due(Lane lane, DueSpan span, int limit, const std::string& node,
                                                  WallTime now) {
  const std::vector<JobId> due = due_in(lane, span, limit, now);
  if (const auto why = refusal(due)) return *why;
  std::vector<Fired> fired;
  for (const JobId id : due) fired.push_back(fire_row(live_.find(id), node, now));
  return fired;
}

WallTime FakeDatabase::not_before_deadline(const Job& job, WallTime time) const {
  const bool is_bound = job.started_at && *job.started_at >= job.action_time && !bugs.forgets_the_deadline;
  return is_bound ? std::max(time, job.action_time) : time;
}

FinishReply FakeDatabase::finish_one(const FinishRequest& request, const std::string& node, WallTime now) {
  if (is_away(shard_of(request.job_id))) return FinishReply::busy;
  const auto row = live_.find(request.job_id);
  if (row == live_.end() || row->second.job.status != JobStatus::running) return FinishReply::stale;
  if (row->second.token != request.token && !bugs.finish_ignores_token) return FinishReply::stale;
  if (is_locked(request.job_id)) return FinishReply::busy;

  Job& job = row->second.job;
  if (request.kind == FinishRequest::Kind::dead || request.kind == FinishRequest::Kind::retry)
    append_error(job, now, node, request.message);
  if (request.kind == FinishRequest::Kind::done) {
    to_history(row, JobStatus::done, Kind::done, request.token, now);
  } else if (request.kind == FinishRequest::Kind::dead) {
    to_history(row, JobStatus::dead, Kind::dead, request.token, now);
  } else if (bugs.loses_retries && request.kind == FinishRequest::Kind::retry) {
    const Job gone = take_live(row).job;
    if (gone.idempotency_key) keys_.erase({gone.biz_id, gone.type_id, *gone.idempotency_key});
  } else {
    const bool gives_back = request.kind == FinishRequest::Kind::release_claim;
    edit_live(row, [&](Row& r) {
      r.token = 0;
      r.job.status = JobStatus::pending;
      r.job.fire_at = not_before_deadline(r.job, bugs.retry_at_once && !gives_back ? now : now + request.delay);
      const bool was_first = r.job.is_first_start();
      if (gives_back && !bugs.release_counts && (--r.job.attempts == 0 || was_first)) r.job.started_at.reset();
      r.job.gmt_modified = now;
      r.job.last_started_at.reset();
    });
    tell(gives_back ? Kind::released : Kind::retried, row->second, now, request.token);
  }
  return FinishReply::applied;
}

std::vector<FinishReply> FakeDatabase::finish(const std::vector<FinishRequest>& requests, const std::string& node,
                                              WallTime now) {
  std::vector<FinishReply> replies;
  for (const FinishRequest& request : requests) replies.push_back(finish_one(request, node, now));
  return replies;
}

int FakeDatabase::mark_dead(const std::vector<JobId>& jobs, WallTime now) {
  int marked_dead = 0;
  for (const JobId id : jobs) {
    const auto row = live_.find(id);
    if (row == live_.end() || is_locked(id)) continue;
    Job& job = row->second.job;
    if (job.status != JobStatus::running || job.fire_at > now || job.attempts < job.max_attempts) continue;
    append_error(job, now, job.node.value_or(""), "lease expired");
    to_history(row, JobStatus::dead, Kind::marked_dead, 0, now);
    ++marked_dead;
  }
  return marked_dead;
}

Result<int> FakeDatabase::drop_too_late(Lane lane, WallTime before, int limit, int passed, const std::string& node,
                                        WallTime now) {
  for (const auto& [name, type] : types_) {  // what the registry says, if it knows the type
    if (type.type_id != lane.type_id) continue;
    if (!type.drop_older_than) return 0;
    before = std::min(before, now - *type.drop_older_than);
  }
  std::vector<JobId> late;
  for (auto it = due_.lower_bound({lane, WallTime::min(), 0}); it != due_.end() && std::get<Lane>(*it) == lane; ++it) {
    const auto& [_, fire_at, id] = *it;
    if (fire_at >= std::min(before, now) || static_cast<int>(late.size()) >= limit) break;
    if (!is_locked(id) && --passed < 0) late.push_back(id);
  }
  if (const auto why = refusal(late)) return *why;
  for (const JobId id : late) {
    const auto row = live_.find(id);
    append_error(row->second.job, now, node, "too late");
    row->second.job.errors.back().started_at.clear();  // no attempt failed
    to_history(row, JobStatus::dead, Kind::dropped, 0, now);
  }
  return static_cast<int>(late.size());
}

// ReportStore ---------------------------------------------------------------------------------------------------------

std::optional<Job> FakeDatabase::find(JobId id) const {
  if (const auto row = live_.find(id); row != live_.end()) return row->second.job;
  if (const auto row = history_.find(id); row != history_.end()) return row->second.job;
  return std::nullopt;
}

std::vector<Job> FakeDatabase::list(const JobFilter& filter) const {
  const auto matches = [&](const Job& job) {
    return (!filter.biz_id || job.biz_id == *filter.biz_id) && (!filter.type_id || job.type_id == *filter.type_id) &&
           (!filter.status || job.status == *filter.status) && (!filter.from || job.action_time >= *filter.from) &&
           (!filter.to || job.action_time < *filter.to) && (!filter.below || job.job_id < *filter.below);
  };
  std::vector<Job> found;
  for (const auto* table : {&live_, &history_})
    for (const auto& [id, row] : *table)
      if (matches(row.job)) found.push_back(row.job);
  std::ranges::sort(found, std::greater{}, &Job::job_id);
  if (static_cast<int>(found.size()) > filter.limit) found.resize(static_cast<std::size_t>(filter.limit));
  return found;
}

std::vector<TypeCount> FakeDatabase::counts() const {
  std::map<std::pair<TypeId, JobStatus>, std::int64_t> sums;
  for (const auto* table : {&live_, &history_})
    for (const auto& [id, row] : *table) ++sums[{row.job.type_id, row.job.status}];
  std::vector<TypeCount> counts;
  for (const auto& [key, n] : sums) counts.push_back({key.first, key.second, n});
  return counts;
}

std::int64_t FakeDatabase::overdue(int at_most, WallTime now) const {
  const auto n = std::ranges::count_if(live_, [&](const auto& entry) { return entry.second.job.fire_at <= now; });
  return std::min<std::int64_t>(n, at_most);
}

}  // namespace tocsin

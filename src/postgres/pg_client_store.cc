#include "postgres/pg_client_store.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <limits>
#include <set>

#include "ports/row_refusal.h"
#include "postgres/duplicate_ids.h"
#include "postgres/job_rows.h"
#include "postgres/part_writer.h"
#include "postgres/pg_changes.h"
#include "postgres/pg_create.h"
#include "postgres/queries.h"
#include "postgres/sql_text.h"
#include "postgres/values.h"

namespace tocsin {
namespace {

// Numbers are drawn in blocks, about as many as are used in half a second; otherwise each create would cost one more
// round trip.
constexpr std::size_t kFewestIds = 32;  // what PostgreSQL writes one log record for
constexpr std::size_t kMostIds = 4096;
// Older numbers are left unused: lists are sorted by id, so ids must follow the order of creation to within this time.
constexpr auto kIdAge = std::chrono::milliseconds(500);
constexpr int kCreateTries = 3;
// A partial batch begins no wait for a held key this long after its first one.
constexpr auto kWaitsOfBatch = std::chrono::seconds(3);

// A job that the database cannot write now. Values that it does not take are the fault of the caller's jobs, however
// many there are.
bool is_unwritable(const Error& error) { return error.code == ErrorCode::unavailable; }
// A job that cannot be cancelled. What meets a lock concerns all that is cancelled with it.
bool is_refused_cancel(const Error& error) { return is_refused_row(error) && error.code != ErrorCode::conflict; }

CancelReply cancelled(Job job) { return {CancelReply::Kind::cancelled, job.job_id, std::move(job)}; }

}  // namespace

Status PgClientStore::warm_up() {
  if (auto done = reserve_ids(1); !done) return done;
  return session_.read([&](pqxx::nontransaction& tx) {
    const char* none = "{}";
    exec(tx, session_.prepared("create"), none, none, none, none, none, none, none, none, none, false, none);
    find_jobs(session_, tx, {});
  });
}

Status PgClientStore::reserve_ids(std::size_t n) {
  const auto now = std::chrono::steady_clock::now();
  if (now - drawn_at_ >= kIdAge) {
    const std::size_t used = block_ - std::min(block_, sequence_.size());
    block_ = std::clamp(2 * used, kFewestIds, kMostIds);
    sequence_.clear();
  }
  if (sequence_.size() >= n && drawn_on_ == session_.connections()) return Unit{};
  if (sequence_.empty())
    drawn_at_ = now;
  else
    block_ = std::min(2 * block_, kMostIds);
  // The numbers come before the insert, so that a commit whose answer is lost can be looked up by id.
  return session_.read([&](pqxx::nontransaction& tx) {
    if (drawn_on_ != session_.connections()) {
      // Another server may answer now, or an older state of it, whose sequence gives the same numbers to others.
      sequence_.clear();
      tx.exec(sql::statement("raise_ids"));
      drawn_on_ = session_.connections();
    }
    if (sequence_.size() >= n) return;
    for (const auto& row : exec(tx, session_.prepared("reserve_ids"), static_cast<int>(std::max(n, block_))))
      sequence_.push_back(row[0].as<std::int64_t>());
  });
}

Result<std::vector<JobId>> PgClientStore::draw_ids(std::span<const NewJob> jobs) {
  if (auto reserved = reserve_ids(jobs.size()); !reserved) {
    Error error = reserved.error();
    // A lock of raise_ids: callers take a conflict for a key that is held.
    if (error.code == ErrorCode::conflict) error = {ErrorCode::unavailable, error.message, ""};
    return error;
  }
  std::vector<JobId> ids;
  ids.reserve(jobs.size());
  for (const NewJob& job : jobs) {
    ids.push_back(make_job_id(sequence_.front(), shard_of(job.biz_id, shards_)));
    sequence_.pop_front();
  }
  return ids;
}

Result<bool> PgClientStore::find_created(std::span<const NewJob> jobs, const std::vector<JobId>& created,
                                         std::vector<CreateReply>& replies) {
  return session_.read<bool>([&](pqxx::nontransaction& tx) {
    const auto found = find_jobs(session_, tx, created);
    // If only some exist, the other jobs were refused for their types, or cannot be read here any more.
    if (found.size() < created.size()) return false;
    for (std::size_t i = 0; i < replies.size(); ++i) {
      CreateReply& reply = replies[i];
      auto it = found.find(reply.job_id);
      if (it == found.end() || reply.kind != CreateReply::Kind::created) continue;
      // After a failover that lost the job, its id may have been drawn again.
      if (it->second.biz_id != jobs[i].biz_id || it->second.type_id != jobs[i].type_id) return false;
      reply.action_time = it->second.action_time;
      reply.fire_at = it->second.fire_at;
      reply.gmt_create = it->second.gmt_create;
    }
    return true;
  });
}

Result<std::vector<CreateReply>> PgClientStore::create(std::span<const NewJob> jobs, CreateMode mode) {
  const bool has_keys = std::ranges::any_of(jobs, [](const NewJob& job) { return job.idempotency_key.has_value(); });
  const bool is_by_itself =
      (mode == CreateMode::each_by_itself && jobs.size() > 1) || mode == CreateMode::each_but_held;
  if (!is_by_itself || !has_keys) {
    auto created = create_at_once(jobs, mode, kCreateTries);
    if (created || !is_by_itself) return created;
    if (!is_row_error(created.error()) || is_contention(created.error().code)) return created;
  }
  std::vector<CreateReply> replies(jobs.size());
  std::vector<std::size_t> held;
  const auto refuse = [&](std::size_t i, const Error& why) {
    const auto kind = why.code == ErrorCode::invalid ? CreateReply::Kind::invalid : CreateReply::Kind::unwritable;
    replies[i] = {kind, 0, {}, {}, {}, {}, why.message};
  };
  const auto write = [&](std::size_t begin, std::size_t size) -> Result<bool> {
    auto created = create_at_once(jobs.subspan(begin, size), CreateMode::each_if_free, 1);
    if (!created) return created.error();
    std::ranges::move(*created, replies.begin() + static_cast<std::ptrdiff_t>(begin));
    return true;
  };
  const auto leave_out = [&](std::size_t i, const Error& why) {
    if (why.code == ErrorCode::conflict) return held.push_back(i);
    refuse(i, why);
  };
  const int waits = mode == CreateMode::each_but_held ? kMostHeldTries : kMostKeyWaits;
  PartWriter parts(is_row_error, waits, kMostRefusedInARow, is_unwritable);
  const auto reached = parts.write(jobs.size(), write, leave_out);
  if (!reached) return reached.error();
  for (std::size_t i = *reached; i < jobs.size(); ++i) {
    if (parts.has_given_up())
      refuse(i, untried(parts.last_refusal()));
    else
      held.push_back(i);
  }
  bool may_wait = waits_for_keys(mode);
  const auto waits_end = std::chrono::steady_clock::now() + kWaitsOfBatch;
  for (const std::size_t i : held) {
    replies[i].kind = CreateReply::Kind::locked;
    // One wait that fails ends all. So does the time: the holders may end one after the other.
    if (!may_wait || std::chrono::steady_clock::now() >= waits_end) continue;
    auto late = create_at_once(jobs.subspan(i, 1), CreateMode::each_by_itself, 1);
    if (late)
      replies[i] = std::move(late->front());
    else if (is_contention(late.error().code))
      may_wait = false;
    else if (is_refused_row(late.error()))
      refuse(i, late.error());
    else
      return Error{ErrorCode::in_doubt, late.error().message, ""};  // the others are created
  }
  return replies;
}

Result<std::vector<CreateReply>> PgClientStore::create_at_once(std::span<const NewJob> jobs, CreateMode mode,
                                                               int most_tries) {
  if (jobs.empty()) return std::vector<CreateReply>{};
  for (int tries = 1;; ++tries) {
    const auto ids = draw_ids(jobs);
    if (!ids) return ids.error();
    PgCreate create(session_, jobs, *ids, drawn_on_, mode);
    Status done = create.run();
    if (done) return create.take_replies();
    const Error& error = done.error();
    // Undone, or not even begun: with fresh ids it may succeed.
    if (create.has_bad_ids()) {
      drawn_on_ = 0;
      if (tries < kCreateTries) continue;
    }
    const bool may_be_gone = is_contention(error.code) && error.field != kLocked;
    if (may_be_gone && tries < most_tries && waits_for_keys(mode))
      continue;  // undone; a concurrent holder of a key may be gone now
    if (error.code != ErrorCode::in_doubt) return error;
    const auto created = create.created_ids();
    if (created.empty()) return error;
    auto replies = create.take_replies();
    const auto is_there = find_created(jobs, created, replies);
    if (is_there && *is_there) return replies;
    return error;
  }
}

Status PgClientStore::cancel_unanswered(std::span<const JobId> unanswered, sql::LockPolicy policy,
                                        CancelReplies& replies) {
  const JobArrays keys(unanswered);
  return session_.write([&](pqxx::nontransaction& tx) {
    const std::string name = "cancel_" + std::to_string(static_cast<int>(policy));
    const auto rows = with_duplicate_ids_repaired(session_, tx, unanswered, [&] {
      return exec(tx, session_.prepared(name, [=] { return sql::cancel(policy); }), keys.shards.literal(),
                  keys.jobs.literal());
    });
    for (const auto& row : rows) {
      CancelReply reply = cancelled(job_from_row(row));
      replies.insert_or_assign(reply.job_id, std::move(reply));
    }
    std::vector<JobId> rest;
    std::ranges::copy_if(unanswered, std::back_inserter(rest), [&](JobId id) { return !replies.contains(id); });
    if (rest.empty()) return;
    auto found = find_jobs(session_, tx, rest);
    for (JobId id : rest) {
      auto it = found.find(id);
      if (it == found.end()) {
        replies[id] = {CancelReply::Kind::not_found, id, {}};
      } else if (it->second.job_id != id) {
        replies[id] = {CancelReply::Kind::not_found, it->second.job_id, {}};  // the id stands for that job
      } else if (it->second.status != JobStatus::pending) {
        const auto kind = is_final(it->second.status) ? CancelReply::Kind::finished : CancelReply::Kind::running;
        replies[id] = {kind, id, std::move(it->second)};
      }
    }
  });
}

Status PgClientStore::cancel_in_parts(std::span<const JobId> unanswered, sql::LockPolicy policy, CancelReplies& replies,
                                      std::optional<Error>& refusal) {
  const auto refuse = [&](std::size_t i) { replies[unanswered[i]] = {CancelReply::Kind::refused, unanswered[i], {}}; };
  const auto write = [&](std::size_t begin, std::size_t size) -> Result<bool> {
    // A larger part may have cancelled some of them before it failed.
    std::vector<JobId> part;
    std::ranges::copy_if(unanswered.subspan(begin, size), std::back_inserter(part),
                         [&](JobId id) { return !replies.contains(id); });
    if (const Status done = cancel_unanswered(part, policy, replies); !done) return done.error();
    return false;  // what was cancelled has its reply: a later failure leaves it in no doubt
  };
  const auto leave_out = [&](std::size_t i, const Error& why) {
    refuse(i);
    refusal = why;
  };
  PartWriter parts(is_refused_cancel, PartWriter::kAnyNumber, kMostRefusedInARow);
  const auto reached = parts.write(unanswered.size(), write, leave_out);
  if (!reached) return reached.error();
  for (std::size_t i = *reached; i < unanswered.size(); ++i) refuse(i);
  return Unit{};
}

Result<std::vector<CancelReply>> PgClientStore::cancel(std::span<const JobId> jobs, LockWait wait) {
  const std::set<JobId> all(jobs.begin(), jobs.end());
  CancelReplies replies;
  std::optional<Error> refusal;  // the last
  // First all jobs together. If a row is locked or refused, the jobs that are not locked, so that one locked row does
  // not delay them, in parts in which no row is refused. Last the locked ones, waiting for their locks.
  for (const auto policy : {sql::LockPolicy::together, sql::LockPolicy::skipping, sql::LockPolicy::waiting}) {
    std::vector<JobId> unanswered;
    std::ranges::copy_if(all, std::back_inserter(unanswered), [&](JobId id) { return !replies.contains(id); });
    if (unanswered.empty() || (policy == sql::LockPolicy::waiting && wait == LockWait::none)) break;
    const bool is_first = policy == sql::LockPolicy::together;
    const Status done = is_first ? cancel_unanswered(unanswered, policy, replies)
                                 : cancel_in_parts(unanswered, policy, replies, refusal);
    if (done || (is_first && is_refused_cancel(done.error()))) continue;
    const Error& error = done.error();
    const bool is_locked = is_contention(error.code);
    if (is_locked && policy != sql::LockPolicy::skipping) continue;
    if (replies.empty()) return error;
    // What was cancelled is committed, so its answers are returned.
    if (is_locked || error.code == ErrorCode::unavailable) break;
    return Error{ErrorCode::in_doubt, error.message, ""};
  }
  const auto is_refused = [](const auto& reply) { return reply.second.kind == CancelReply::Kind::refused; };
  if (refusal && replies.size() == all.size() && std::ranges::all_of(replies, is_refused)) return *refusal;
  std::vector<CancelReply> ordered;
  for (JobId id : jobs) {
    auto it = replies.find(id);
    if (it != replies.end() && it->second.kind == CancelReply::Kind::not_found && it->second.job_id != id) {
      auto existing = cancel({&it->second.job_id, 1}, wait);
      if (existing)
        it->second = std::move(existing->front());
      else if (is_refused_cancel(existing.error()))
        it->second.kind = CancelReply::Kind::refused;
      else
        return Error{ErrorCode::in_doubt, existing.error().message, ""};  // others may be cancelled
    }
    ordered.push_back(it == replies.end() ? CancelReply{CancelReply::Kind::locked, id, {}} : it->second);
    // Exactly one caller gets the answer that it cancelled the job.
    if (ordered.back().kind == CancelReply::Kind::cancelled) it->second.kind = CancelReply::Kind::finished;
  }
  return ordered;
}

Result<ChangeBatchReply> PgClientStore::change_together(const ChangeBatch& batch) {
  return PgChanges(session_, shards_, batch).run();
}

// First the live tables. Jobs that are not there are read again in one snapshot of live and history tables, so a job
// that moves to history meanwhile is never missed.
Result<std::vector<std::optional<Job>>> PgClientStore::find(std::span<const JobId> jobs) {
  return session_.read<std::vector<std::optional<Job>>>([&](pqxx::nontransaction& tx) {
    const JobArrays keys(jobs);
    std::unordered_map<JobId, Job> found;
    for (const auto& row : exec(tx, session_.prepared("find_live"), keys.shards.literal(), keys.jobs.literal())) {
      Job job = job_from_row(row);
      found.insert_or_assign(job.job_id, std::move(job));
    }
    std::vector<JobId> missing;
    std::ranges::copy_if(jobs, std::back_inserter(missing), [&](JobId id) { return !found.contains(id); });
    if (!missing.empty()) found.merge(find_jobs(session_, tx, missing));
    std::vector<std::optional<Job>> ordered;
    for (const JobId id : jobs) {
      const auto it = found.find(id);
      ordered.push_back(it == found.end() ? std::nullopt : std::optional(it->second));
    }
    return ordered;
  });
}

Result<std::vector<KeyList>> PgClientStore::list_keys(std::span<const KeyQuery> queries) {
  return session_.read<std::vector<KeyList>>([&](pqxx::nontransaction& tx) {
    PgArray shards, biz_ids, types, below, most, most_read;
    for (const KeyQuery& query : queries) {
      shards.add(shard_of(query.biz_id, shards_));
      biz_ids.add_text(query.biz_id);
      types.add(query.type);
      below.add(query.below.value_or(std::numeric_limits<JobId>::max()));
      most.add(query.limit);
      most_read.add(query.type ? kMostReadOfKey : query.limit);
    }
    std::vector<KeyList> lists(queries.size());
    for (const auto& row :
         exec(tx, session_.prepared("list_keys"), shards.literal(), biz_ids.literal(), types.literal(), below.literal(),
              most.literal(), most_read.literal(), kMostBytesOfList)) {
      const auto i = row["ord"].as<std::size_t>() - 1;
      Job job = job_from_row(row);
      const auto& type = queries[i].type;
      if (row["is_full"].as<bool>() || (type && row["n"].as<int>() == kMostReadOfKey))
        lists[i].unread_below = job.job_id;
      if (!type || job.type_id == *type) lists[i].jobs.push_back(std::move(job));
    }
    // The rows come in the order of the join.
    for (KeyList& list : lists) std::ranges::sort(list.jobs, std::greater(), &Job::job_id);
    return lists;
  });
}

Result<CancelAllReply> PgClientStore::cancel_all(const std::string& biz_id, std::optional<TypeId> type) {
  CancelAllReply reply;
  const auto ids = session_.read<std::vector<JobId>>([&](pqxx::nontransaction& tx) {
    std::vector<JobId> live, ended;
    reply = {};
    for (const auto& row : exec(tx, session_.prepared("ids_of_key"), biz_id, shard_of(biz_id, shards_), type,
                                static_cast<int>(kMostOfOneKey), static_cast<int>(kMostNamed))) {
      const int status = row[1].as<int>();
      if (status == kMoreEnded)
        reply.has_more_finished = true;
      else
        (is_final(static_cast<JobStatus>(status)) ? ended : live).push_back(row[0].as<JobId>());
    }
    reply.has_more = live.size() == kMostOfOneKey;
    std::ranges::sort(ended, std::greater());
    live.insert(live.end(), ended.begin(), ended.end());
    return live;
  });
  if (!ids) return ids.error();
  auto cancelled = cancel(*ids, LockWait::none);
  if (!cancelled) return cancelled.error();
  reply.jobs = std::move(*cancelled);
  return reply;
}

}  // namespace tocsin

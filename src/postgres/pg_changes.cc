#include "postgres/pg_changes.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "postgres/duplicate_ids.h"
#include "postgres/job_rows.h"
#include "postgres/pg_client_store.h"
#include "postgres/values.h"

namespace tocsin {
namespace {

using sql::LockPolicy;

constexpr int kTooManyLive = -2;  // what live_of_key answers in place of a status

// `moved`: the job of one request belongs to a write-frozen shard.
bool may_be_one_request(const Error& error) { return error.code == ErrorCode::moved || is_refused_row(error); }

PartWriter parts_of_kind() { return PartWriter(may_be_one_request, PartWriter::kAnyNumber, kMostRefusedInARow); }

template <class Reply>
std::vector<Result<Reply>> with_refusals(std::vector<Reply> replies, const std::map<std::size_t, Error>& refused) {
  std::vector<Result<Reply>> all;
  all.reserve(replies.size());
  for (std::size_t i = 0; i < replies.size(); ++i) {
    const auto why = refused.find(i);
    all.push_back(why == refused.end() ? Result<Reply>(std::move(replies[i])) : why->second);
  }
  return all;
}

std::string name_of(const char* verb, LockPolicy policy) {
  return std::string(verb) + "_" + std::to_string(static_cast<int>(policy));
}

}  // namespace

struct PgChanges::KeyArrays {
  PgArray shards, biz_ids, types;
};

PgChanges::PgChanges(Session& session, int shards, const ChangeBatch& batch)
    : session_(session),
      shards_(shards),
      batch_(batch),
      refused_cancels_{parts_of_kind()},
      refused_keys_{parts_of_kind()},
      refused_changes_{parts_of_kind()},
      has_cancelled_(batch.cancels.size()),
      has_changed_(batch.changes.size()),
      is_taken_key_(batch.key_cancels.size()),
      is_taken_change_(batch.changes.size()) {
  reply_.cancels.resize(batch.cancels.size());
  reply_.key_cancels.resize(batch.key_cancels.size());
  reply_.changes.resize(batch.changes.size());
}

PgChanges::SubBatch PgChanges::next_sub_batch() {
  SubBatch part;
  if (!std::exchange(has_begun_, true)) {
    // A cancel is final: a repeated one in the batch is answered from the first, without a statement of its own.
    std::unordered_set<JobId> seen;
    for (std::size_t i = 0; i < batch_.cancels.size(); ++i)
      if (seen.insert(batch_.cancels[i]).second) part.cancels.push_back(i);
  }
  std::set<std::string> keys;
  for (std::size_t i = 0; i < batch_.key_cancels.size(); ++i) {
    if (is_taken_key_[i] || !keys.insert(batch_.key_cancels[i].biz_id).second) continue;
    is_taken_key_[i] = true;
    part.key_cancels.push_back(i);
  }
  std::unordered_set<JobId> jobs;
  for (std::size_t i = 0; i < batch_.changes.size(); ++i) {
    if (is_taken_change_[i] || !jobs.insert(batch_.changes[i].job).second) continue;
    is_taken_change_[i] = true;
    part.changes.push_back(i);
  }
  std::ranges::sort(part.cancels, {}, [&](std::size_t i) { return batch_.cancels[i]; });
  std::ranges::sort(part.key_cancels, {}, [&](std::size_t i) { return batch_.key_cancels[i].biz_id; });
  std::ranges::sort(part.changes, {}, [&](std::size_t i) { return batch_.changes[i].job; });
  return part;
}

Result<ChangeBatchReply> PgChanges::run() {
  std::optional<Error> unreadable;
  for (SubBatch part = next_sub_batch(); !part.is_empty(); part = next_sub_batch()) {
    if (unreadable) {
      refuse_all(part, *unreadable);
      continue;
    }
    refuse_untried(part);
    if (part.is_empty()) continue;
    if (const Status done = write(part); !done) {
      // Earlier transactions stay written, and an Error cannot say which.
      const Error& error = done.error();
      return has_written_ ? Error{ErrorCode::in_doubt, error.message, ""} : error;
    }
    if (const Status read = answer_unchanged(part); !read) {
      unreadable = read.error();
      leave_unanswered(part, *unreadable);
    }
  }
  if (const Status done = redo_for_existing_jobs(); !done) return Error{ErrorCode::in_doubt, done.error().message, ""};
  answer_repeated_cancels();
  return take_reply();
}

ChangeBatchReply PgChanges::take_reply() {
  return {with_refusals(std::move(reply_.cancels), refused_cancels_.of),
          with_refusals(std::move(reply_.key_cancels), refused_keys_.of),
          with_refusals(std::move(reply_.changes), refused_changes_.of)};
}

Status PgChanges::redo_for_existing_jobs() {
  if (existing_.cancels.empty() && existing_.changes.empty()) return Unit{};
  existing_.is_retry = batch_.is_retry;
  auto reply = PgChanges(session_, shards_, existing_).run();
  if (!reply) return reply.error();
  const auto take = [](auto& replies, const Indices& at, auto& of, Refusals& refusals) {
    for (std::size_t i = 0; i < at.size(); ++i) {
      if (replies[i])
        of[at[i]] = std::move(*replies[i]);
      else
        refusals.of.emplace(at[i], replies[i].error());
    }
  };
  take(reply->cancels, existing_cancels_, reply_.cancels, refused_cancels_);
  take(reply->changes, existing_changes_, reply_.changes, refused_changes_);
  return Unit{};
}

// Of several cancels of one job exactly one is answered with `cancelled`.
void PgChanges::answer_repeated_cancels() {
  std::unordered_map<JobId, std::size_t> first;
  for (std::size_t i = 0; i < batch_.cancels.size(); ++i) {
    const auto [it, is_first] = first.try_emplace(batch_.cancels[i], i);
    if (is_first) continue;
    if (const auto why = refused_cancels_.of.find(it->second); why != refused_cancels_.of.end())
      refused_cancels_.of.emplace(i, why->second);
    reply_.cancels[i] = reply_.cancels[it->second];
    if (reply_.cancels[i].kind == CancelReply::Kind::cancelled) reply_.cancels[i].kind = CancelReply::Kind::finished;
  }
}

void PgChanges::refuse_untried(SubBatch& part) {
  const auto refuse = [](Indices& items, Refusals& refusals) {
    if (!refusals.parts.has_given_up()) return;
    for (const std::size_t i : items) refusals.of.emplace(i, untried(refusals.parts.last_refusal()));
    items.clear();
  };
  refuse(part.cancels, refused_cancels_);
  refuse(part.key_cancels, refused_keys_);
  refuse(part.changes, refused_changes_);
}

Status PgChanges::write(const SubBatch& part) {
  if (batch_.is_retry) return write_by_kind(part);
  Status done = write_together(part);
  has_written_ = has_written_ || done;
  if (done || (!is_contention(done.error().code) && !is_row_error(done.error()))) return done;
  return write_by_kind(part);
}

Status PgChanges::write_together(const SubBatch& part) {
  is_by_kind_ = false;
  const auto all = [&](pqxx::transaction_base& tx) {
    cancel(tx, part.cancels, LockPolicy::together);
    cancel_keys(tx, part.key_cancels);
    change(tx, part.changes, LockPolicy::together);
  };
  return part.kinds() == 1 ? session_.write(all) : session_.transact(all);
}

// write_together() failed on a locked or refused row and changed nothing.
Status PgChanges::write_by_kind(const SubBatch& part) {
  is_by_kind_ = true;
  for (const std::size_t i : part.cancels) has_cancelled_[i] = false;
  for (const std::size_t i : part.key_cancels) reply_.key_cancels[i] = {};
  for (const std::size_t i : part.changes) has_changed_[i] = false;
  const auto cancel_some = [&](auto& tx, const Indices& items) { cancel(tx, items, LockPolicy::skipping); };
  const auto cancel_keys_of = [&](auto& tx, const Indices& items) { cancel_free_keys(tx, items); };
  const auto change_some = [&](auto& tx, const Indices& items) { change(tx, items, LockPolicy::skipping); };
  Status done = write_one_kind(refused_cancels_, part.cancels, cancel_some);
  if (done) done = write_one_kind(refused_keys_, part.key_cancels, cancel_keys_of);
  return done ? write_one_kind(refused_changes_, part.changes, change_some) : done;
}

// Skips locked rows, so it waits only for the lock of a table: not long, for the other kinds wait behind it.
Status PgChanges::write_free(const std::function<void(pqxx::transaction_base&)>& statement) {
  const auto work = [&](pqxx::work& tx) {
    exec(tx, session_.prepared("lock_wait"), "50ms");
    statement(tx);
  };
  Status done = with_freed_ids(session_, {}, [&] { return session_.transact(work); });
  has_written_ = has_written_ || done;
  return done;
}

Status PgChanges::write_one_kind(Refusals& refusals, const Indices& items, const WriteItems& statement) {
  const auto write = [&](std::size_t begin, std::size_t size) -> Result<bool> {
    const auto first = items.begin() + static_cast<std::ptrdiff_t>(begin);
    const Indices part(first, first + static_cast<std::ptrdiff_t>(size));
    const Status done = write_free([&](auto& tx) { statement(tx, part); });
    if (done) return true;
    // The whole table is locked. What is still pending is answered by answer_unchanged(), as `locked`.
    if (done.error().field == kLocked) return false;
    return done.error();
  };
  const auto leave_out = [&](std::size_t i, const Error& why) {
    if (!is_contention(why.code)) refusals.of.emplace(items[i], why);  // otherwise it is answered in the same way
  };
  const auto reached = refusals.parts.write(items.size(), write, leave_out);
  if (!reached) return reached.error();
  for (std::size_t i = *reached; i < items.size(); ++i)
    refusals.of.emplace(items[i], untried(refusals.parts.last_refusal()));
  return Unit{};
}

void PgChanges::cancel(pqxx::transaction_base& tx, const Indices& items, LockPolicy policy) {
  if (items.empty()) return;
  JobArrays keys;
  std::unordered_map<JobId, std::size_t> index;
  for (const std::size_t i : items) {
    index.emplace(batch_.cancels[i], i);
    keys.add(batch_.cancels[i]);
  }
  const auto& statement = session_.prepared(name_of("cancel", policy), [=] { return sql::cancel(policy); });
  for (const auto& row : exec(tx, statement, keys.shards.literal(), keys.jobs.literal())) {
    Job job = job_from_row(row);
    const std::size_t i = index.at(job.job_id);
    has_cancelled_[i] = true;
    reply_.cancels[i] = {CancelReply::Kind::cancelled, job.job_id, std::move(job)};
  }
}

void PgChanges::cancel_keys(pqxx::transaction_base& tx, const Indices& items) {
  if (items.empty()) return;
  answer_keys(tx, session_.prepared("cancel_keys_together"), items);
}

void PgChanges::cancel_free_keys(pqxx::transaction_base& tx, const Indices& items) {
  const KeyArrays keys = arrays_of(items);
  for (const auto& row : exec(tx, session_.prepared("cancel_keys"), keys.shards.literal(), keys.biz_ids.literal(),
                              keys.types.literal(), static_cast<int>(ClientStore::kMostOfOneKeyTogether)))
    reply_.key_cancels[items[row[0].as<std::size_t>() - 1]].cancelled.push_back(row[1].as<JobId>());
}

void PgChanges::change(pqxx::transaction_base& tx, const Indices& items, LockPolicy policy) {
  if (items.empty()) return;
  JobArrays keys;
  PgArray at, in;
  std::unordered_map<JobId, std::size_t> index;
  for (const std::size_t i : items) {
    const PendingChange& change = batch_.changes[i];
    index.emplace(change.job, i);
    keys.add(change.job);
    at.add(change.when ? change.when->at : std::nullopt);
    in.add(change.when && change.when->in ? std::optional(change.when->in->count()) : std::nullopt);
  }
  const auto& statement =
      session_.prepared(name_of("change_pending", policy), [=] { return sql::change_pending(policy); });
  for (const auto& row : exec(tx, statement, keys.shards.literal(), keys.jobs.literal(), at.literal(), in.literal())) {
    Job job = job_from_row(row);
    const std::size_t i = index.at(job.job_id);
    has_changed_[i] = true;
    reply_.changes[i] = {ChangeReply::Kind::changed, std::move(job)};
  }
}

Status PgChanges::answer_unchanged(const SubBatch& part) {
  const std::size_t cancels = existing_cancels_.size(), changes = existing_changes_.size();
  const auto written = is_by_kind_ ? reply_.key_cancels : std::vector<KeyCancelReply>{};
  Indices keys;
  std::ranges::copy_if(part.key_cancels, std::back_inserter(keys),
                       [&](std::size_t i) { return !refused_keys_.of.contains(i); });
  const auto forget_answers = [&] {
    existing_.cancels.resize(cancels);
    existing_cancels_.resize(cancels);
    existing_.changes.resize(changes);
    existing_changes_.resize(changes);
    if (is_by_kind_) reply_.key_cancels = written;
  };
  Status done = session_.read([&](pqxx::nontransaction& tx) {
    forget_answers();  // after a lost connection this runs again
    answer_unchanged_jobs(tx, part);
    if (is_by_kind_) answer_keys_by_state(tx, keys);
  });
  if (!done) forget_answers();
  return done;
}

void PgChanges::leave_unanswered(const SubBatch& part, const Error& why) {
  for (const std::size_t i : part.cancels)
    if (is_unanswered_cancel(i)) refused_cancels_.of.emplace(i, why);
  for (const std::size_t i : part.changes)
    if (is_unanswered_change(i)) refused_changes_.of.emplace(i, why);
  if (!is_by_kind_) return;  // the statement that cancelled has answered the keys
  for (const std::size_t i : part.key_cancels) {
    const bool has_cancelled = !reply_.key_cancels[i].cancelled.empty();
    refused_keys_.of.emplace(i, has_cancelled ? Error{ErrorCode::in_doubt, why.message, ""} : why);
  }
}

void PgChanges::refuse_all(const SubBatch& part, const Error& why) {
  for (const std::size_t i : part.cancels) refused_cancels_.of.emplace(i, why);
  for (const std::size_t i : part.key_cancels) refused_keys_.of.emplace(i, why);
  for (const std::size_t i : part.changes) refused_changes_.of.emplace(i, why);
}

// A refused row is not read: what is damaged may fail the answers of the others.
bool PgChanges::is_unanswered_cancel(std::size_t i) const {
  return !has_cancelled_[i] && !refused_cancels_.of.contains(i);
}
bool PgChanges::is_unanswered_change(std::size_t i) const {
  return !has_changed_[i] && !refused_changes_.of.contains(i);
}

// An unchanged job that is still pending is locked, or its shard is moving.
void PgChanges::answer_unchanged_jobs(pqxx::transaction_base& tx, const SubBatch& part) {
  std::vector<JobId> ids;
  for (const std::size_t i : part.cancels)
    if (is_unanswered_cancel(i)) ids.push_back(batch_.cancels[i]);
  for (const std::size_t i : part.changes)
    if (is_unanswered_change(i)) ids.push_back(batch_.changes[i].job);
  if (ids.empty()) return;
  std::ranges::sort(ids);
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  const auto found = find_jobs(session_, tx, ids);
  const auto tell = [&](JobId id, auto& reply, auto locked) {
    using Kind = decltype(locked);
    const auto it = found.find(id);
    if (it == found.end()) {
      reply.kind = Kind::not_found;
      return;
    }
    const JobStatus status = it->second.status;
    reply.kind = status == JobStatus::pending ? locked : is_final(status) ? Kind::finished : Kind::running;
    reply.job.reset();
    if (reply.kind != Kind::locked) reply.job = it->second;
  };
  const auto stands_for = [&](JobId id) -> std::optional<JobId> {
    const auto it = found.find(id);
    return it == found.end() || it->second.job_id == id ? std::nullopt : std::optional(it->second.job_id);
  };
  for (const std::size_t i : part.cancels) {
    if (!is_unanswered_cancel(i)) continue;
    if (const auto existing = stands_for(batch_.cancels[i])) {
      existing_.cancels.push_back(*existing);
      existing_cancels_.push_back(i);
      continue;
    }
    reply_.cancels[i].job_id = batch_.cancels[i];
    tell(batch_.cancels[i], reply_.cancels[i], CancelReply::Kind::locked);
  }
  for (const std::size_t i : part.changes) {
    if (!is_unanswered_change(i)) continue;
    if (const auto existing = stands_for(batch_.changes[i].job)) {
      existing_.changes.push_back({*existing, batch_.changes[i].when});
      existing_changes_.push_back(i);
      continue;
    }
    tell(batch_.changes[i].job, reply_.changes[i], ChangeReply::Kind::locked);
  }
}

PgChanges::KeyArrays PgChanges::arrays_of(const Indices& key_cancels) const {
  KeyArrays keys;
  for (const std::size_t i : key_cancels) {
    const KeyCancel& key = batch_.key_cancels[i];
    keys.shards.add(shard_of(key.biz_id, shards_));
    keys.biz_ids.add_text(key.biz_id);
    keys.types.add(key.type);
  }
  return keys;
}

void PgChanges::answer_keys_by_state(pqxx::transaction_base& tx, const Indices& items) {
  if (items.empty()) return;
  const auto& statement = session_.prepared("state_of_keys");
  answer_keys(tx, statement, items);
}

// Rows (ordinal of the key, job, status), those that this call cancelled first. The marks are no status.
void PgChanges::answer_keys(pqxx::transaction_base& tx, const Statement& statement, const Indices& items) {
  const KeyArrays keys = arrays_of(items);
  for (const auto& row :
       exec(tx, statement, keys.shards.literal(), keys.biz_ids.literal(), keys.types.literal(),
            static_cast<int>(ClientStore::kMostOfOneKeyTogether), static_cast<int>(ClientStore::kMostNamed))) {
    KeyCancelReply& reply = reply_.key_cancels[items[row[0].as<std::size_t>() - 1]];
    const JobId id = row[1].as<JobId>();
    const int status = row[2].as<int>();
    reply.is_too_many = reply.is_too_many || status == kTooManyLive;
    reply.has_more_finished = reply.has_more_finished || status == kMoreEnded;
    if (status < 0) continue;
    switch (static_cast<JobStatus>(status)) {
      case JobStatus::pending:
        reply.locked.push_back(id);
        break;
      case JobStatus::running:
        reply.running.push_back(id);
        break;
      case JobStatus::cancelled:
        reply.cancelled.push_back(id);
        break;
      default:
        if (std::ranges::find(reply.cancelled, id) == reply.cancelled.end()) reply.finished.push_back(id);
    }
  }
  for (const std::size_t i : items) {
    KeyCancelReply& reply = reply_.key_cancels[i];
    std::ranges::sort(reply.cancelled);
    reply.is_too_many = reply.is_too_many && reply.cancelled.empty();
    if (reply.is_too_many) reply.locked = reply.running = {};
  }
}

}  // namespace tocsin

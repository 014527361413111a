#include "support/fake_transaction.h"

#include <algorithm>
#include <utility>

namespace tocsin {

const FakeDatabase::Transaction::Made* FakeDatabase::Transaction::own(const NewJob& job) const {
  const auto made = std::ranges::find_if(made_, [&](const Made& each) {
    return job.idempotency_key && each.row.job.idempotency_key && key_of(job) == key_of(each.row.job);
  });
  return made == made_.end() ? nullptr : &*made;
}

std::optional<CreateReply> FakeDatabase::Transaction::create(const NewJob& job, WallTime now) {
  take_id(now);
  if (const Made* made = own(job))
    return CreateReply{CreateReply::Kind::existing, made->row.job.job_id, {}, {}, {}, made->row.job};
  if (has_ended() || database_.is_held(job)) return {};
  Undo undo;
  CreateReply reply = database_.create_one(job, undo, now);
  if (reply.kind != CreateReply::Kind::created) return reply;
  if (database_.bugs.shows_uncommitted) {
    database_.tell(Change::Kind::created, database_.live_.at(reply.job_id), now);
    return reply;
  }
  database_.held_types_.insert(job.type_id);
  made_.push_back({database_.take_live(database_.live_.find(reply.job_id)), now});
  if (job.idempotency_key) {
    database_.keys_.erase(key_of(job));
    database_.held_keys_.insert(key_of(job));
  }
  return reply;
}

CancelReply FakeDatabase::Transaction::cancel(JobId job, WallTime now) {
  take_id(now);
  const auto row = database_.live_.find(job);
  if (has_ended() || database_.is_locked(job)) return {CancelReply::Kind::locked, job, {}};
  const bool is_pending = row != database_.live_.end() && row->second.job.status == JobStatus::pending;
  if (!is_pending || database_.refuses(job)) return database_.cancel_one(job, now);  // changes nothing
  database_.held_jobs_.insert(job);
  cancelled_.emplace_back(job, now);
  return {CancelReply::Kind::cancelled, job, row->second.job};
}

bool FakeDatabase::Transaction::commit() {
  if (has_ended()) return false;
  release();
  for (Made& made : std::exchange(made_, {})) {
    const JobId id = made.row.job.job_id;
    database_.insert_live(std::move(made.row));
    database_.tell(Change::Kind::created, database_.live_.at(id), made.at);
  }
  for (const auto& [job, at] : std::exchange(cancelled_, {})) {
    const auto refusal = database_.refused_.extract(job);  // comes too late: its row is written
    database_.cancel_one(job, at);
    if (refusal) database_.refuse(job, refusal.mapped());
  }
  writer_.reset();
  return true;
}

void FakeDatabase::Transaction::roll_back() {
  if (!has_ended() && !database_.bugs.keeps_rolled_back_keys) release();
  made_.clear();
  cancelled_.clear();
  writer_.reset();
}

void FakeDatabase::Transaction::release() {
  for (const Made& made : made_) {
    if (made.row.job.idempotency_key) database_.held_keys_.erase(key_of(made.row.job));
    database_.held_types_.erase(database_.held_types_.find(made.row.job.type_id));
  }
  for (const auto& [job, at] : cancelled_) database_.held_jobs_.erase(job);
}

}  // namespace tocsin

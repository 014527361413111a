#include "support/fake_moves.h"

#include <algorithm>
#include <utility>

namespace tocsin {

using State = ShardMove::State;

namespace {

// As the statements do: larger than that of any driver of an earlier move, too.
std::int64_t next_driver(std::int64_t after, WallTime now) {
  return std::max(after + 1, static_cast<std::int64_t>(now.time_since_epoch().count()));
}

Error driven_by_another() { return {ErrorCode::superseded, "another driver has taken this move over", ""}; }

}  // namespace

FakeMoves::FakeMoves(FakeDatabase& database, FakeMoveDatabases& all) : database_(database), all_(all) {
  database_.lives_here = [this](Shard shard) { return here_.contains(shard); };
  database_.on_change = [this](const FakeDatabase::Change& change) {
    if (change.kind == FakeDatabase::Change::Kind::created) ++counted_;
    log(change.job.job_id);
    if (on_change) on_change(change);
  };
}

Status FakeMoves::fenced(const ShardMove& move) const {
  const auto record = moves_.find(move.shard);
  if (record == moves_.end() || record->second.move.driver != move.driver) return driven_by_another();
  return Unit{};
}

ShardMove FakeMoves::told(const Record& record, WallTime now) const {
  ShardMove move = record.move;
  move.may_be_frozen = record.thaw_at.has_value();
  move.is_overdue = record.thaw_at && *record.thaw_at < now;
  return move;
}

std::vector<JobId> FakeMoves::jobs_of(Shard shard) const {
  std::vector<JobId> jobs;
  for (const auto* table : {&database_.live(), &database_.history()})
    for (const auto& [id, row] : *table)
      if (shard_of(id) == shard) jobs.push_back(id);
  return jobs;
}

std::int64_t FakeMoves::rows() const {
  return static_cast<std::int64_t>(database_.live().size() + database_.history().size());
}

std::string FakeMoves::leftovers() const {
  std::string all;
  const auto add = [&all](const std::string& what, Shard shard) {
    all += (all.empty() ? "" : ", ") + what + " of " + std::to_string(shard);
  };
  for (const auto& [shard, record] : moves_) add("note", shard);
  for (const Shard shard : published_) add("publication", shard);
  for (const auto& [shard, position] : slots_) add("slot", shard);
  for (const auto& [shard, subscription] : subscriptions_) add("subscription", shard);
  for (const Shard shard : database_.frozen) add("freeze", shard);
  return all;
}

// Control database ----------------------------------------------------------------------------------------------------

std::vector<ShardMove> FakeMoves::list(WallTime now) const {
  std::vector<ShardMove> all;
  for (const auto& [shard, record] : moves_) all.push_back(told(record, now));
  return all;
}

Result<std::optional<ShardMove>> FakeMoves::take(Shard shard, std::optional<DatabaseId> target,
                                                 std::optional<std::int64_t> driver, WallTime now) {
  using Taken = std::optional<ShardMove>;
  const auto record = moves_.find(shard);
  if (record == moves_.end()) {
    if (!target || database_of(shard) == *target) return Taken();
    Record& begun = moves_[shard];
    begun.move = {shard, database_of(shard), *target, next_driver(0, now), State::copying, false, false};
    return Taken(told(begun, now));
  }
  Record& own = record->second;
  if (driver && own.move.driver != *driver && !own.is_rescued)
    return Error{ErrorCode::invalid, "another command drives this move now", ""};
  if (target && own.move.target != *target)
    return Error{ErrorCode::invalid, "the shard is on its way to another database", ""};
  if (!driver || own.move.driver != *driver) own.move.driver = next_driver(own.move.driver, now);
  own.is_rescued = false;
  return Taken(told(own, now));
}

std::optional<ShardMove> FakeMoves::take_over(const ShardMove& move, WallTime now) {
  const auto record = moves_.find(move.shard);
  if (record == moves_.end() || record->second.move.driver != move.driver) return std::nullopt;
  Record& own = record->second;
  if (!own.thaw_at || *own.thaw_at >= now) return std::nullopt;
  own.move.driver = next_driver(own.move.driver, now);
  own.is_rescued = true;
  if (own.move.state == State::switching) own.move.state = State::copying;
  own.thaw_at = now + kThawLease;
  return told(own, now);
}

Status FakeMoves::set_state(const ShardMove& move, State state, WallTime now) {
  if (auto mine = fenced(move); !mine) return mine;
  Record& own = moves_.at(move.shard);
  if (own.move.state != move.state) return driven_by_another();
  own.move.state = state;
  own.thaw_at.reset();
  if (move.may_be_frozen || state == State::switching) own.thaw_at = now + kThawLease;
  return Unit{};
}

Status FakeMoves::keep(const ShardMove& move, WallTime now) {
  if (auto mine = fenced(move); !mine) return mine;
  moves_.at(move.shard).thaw_at = now + kThawLease;
  return Unit{};
}

Status FakeMoves::set_writable(const ShardMove& move) {
  if (auto mine = fenced(move); !mine) return mine;
  moves_.at(move.shard).thaw_at.reset();
  return Unit{};
}

Status FakeMoves::flip(const ShardMove& move, WallTime now) {
  if (auto mine = fenced(move); !mine) return mine;
  Record& own = moves_.at(move.shard);
  if (own.move.state != State::switching || database_of(move.shard) != move.source) return driven_by_another();
  own.move.state = State::switched;
  own.thaw_at = now + kThawLease;
  std::vector<DatabaseId> database_ids = database_.members.map().database_ids;
  database_ids.at(static_cast<std::size_t>(move.shard)) = move.target;
  database_.members.set_database_ids(std::move(database_ids));
  return Unit{};
}

Status FakeMoves::end(const ShardMove& move) {
  if (auto mine = fenced(move); !mine) return mine;
  moves_.erase(move.shard);
  return Unit{};
}

Status FakeMoves::recall(const ShardMove& lost, WallTime now) {
  const DatabaseId database_id = database_of(lost.shard);
  if (moves_.contains(lost.shard)) return Unit{};
  if (database_id != lost.source && database_id != lost.target)
    return Error{ErrorCode::invalid, "databases remember a move between others", ""};
  Record& record = moves_[lost.shard];
  record.move = lost;
  record.move.driver = next_driver(record.move.driver, now);
  record.move.state = database_id == lost.source ? State::copying : State::switched;
  record.thaw_at = now + kThawLease;
  return Unit{};
}

// Source and target ---------------------------------------------------------------------------------------------------

std::optional<ShardMove> FakeMoves::noted(Shard shard) const {
  const auto record = moves_.find(shard);
  return record == moves_.end() ? std::nullopt : std::optional(record->second.move);
}

void FakeMoves::end_sessions(Shard shard, std::uint64_t by) { ended_[shard] = std::max(ended_[shard], by); }

std::uint64_t FakeMoves::sessions_ended(Shard shard) const {
  const auto ended = ended_.find(shard);
  return ended == ended_.end() ? 0 : ended->second;
}

bool FakeMoves::is_row_locked(Shard shard, std::uint64_t by_others_than) const {
  const auto locks = locks_.find(shard);
  return locks != locks_.end() && std::ranges::any_of(locks->second, [&](std::uint64_t call) {
           return call != by_others_than && call >= sessions_ended(shard);
         });
}

Status FakeMoves::note(const ShardMove& move) {
  const auto [record, is_new] = moves_.try_emplace(move.shard);
  ShardMove& own = record->second.move;
  if (is_new) own = {move.shard, move.source, move.target, move.driver, State::copying, false, false};
  if (own.driver > move.driver || own.source != move.source || own.target != move.target) return driven_by_another();
  own.driver = move.driver;
  return Unit{};
}

Status FakeMoves::note_successor(const ShardMove& move) {
  const auto record = moves_.find(move.shard);
  if (record == moves_.end()) return driven_by_another();
  ShardMove& own = record->second.move;
  if (own.driver > move.driver || own.source != move.source || own.target != move.target) return driven_by_another();
  own.driver = move.driver;
  return Unit{};
}

void FakeMoves::forget(const ShardMove& move) {
  const auto record = moves_.find(move.shard);
  if (record != moves_.end() && record->second.move.driver <= move.driver) moves_.erase(record);
}

Result<std::int64_t> FakeMoves::delete_rows(const ShardMove& move) {
  if (auto mine = fenced(move); !mine) return mine.error();
  if (here_.contains(move.shard)) return Error{ErrorCode::unavailable, "the shard lives here", ""};
  const auto jobs = jobs_of(move.shard);
  for (const JobId job : jobs) {
    database_.drop_copy(job);
    log(job);
  }
  return static_cast<std::int64_t>(jobs.size());
}

Status FakeMoves::freeze(const ShardMove& move) {
  if (auto mine = fenced(move); !mine) return mine;
  if (database_.has_other_writers()) return Error{ErrorCode::conflict, "an open transaction has written", ""};
  database_.frozen.insert(move.shard);
  here_.erase(move.shard);
  return Unit{};
}

Status FakeMoves::unfreeze(const ShardMove& move) {
  if (auto thawed = thaw(move); !thawed) return thawed;
  return open(move);
}

Status FakeMoves::thaw(const ShardMove& move) {
  if (auto mine = fenced(move); !mine) return mine;
  if (database_.frozen.contains(move.shard) && database_.has_other_writers())
    return Error{ErrorCode::conflict, "an open transaction has written", ""};
  database_.frozen.erase(move.shard);
  return Unit{};
}

Status FakeMoves::can_open(const ShardMove& move) {
  if (auto mine = fenced(move); !mine) return mine;
  if (database_.has_other_writers()) return Error{ErrorCode::conflict, "an open transaction has written", ""};
  return Unit{};
}

Status FakeMoves::open(const ShardMove& move) {
  if (auto mine = fenced(move); !mine) return mine;
  if (!here_.contains(move.shard) && database_.has_other_writers())
    return Error{ErrorCode::conflict, "an open transaction has written", ""};
  here_.insert(move.shard);
  return Unit{};
}

Result<std::string> FakeMoves::take_counts(const ShardMove& move) {
  if (auto mine = fenced(move); !mine) return mine.error();
  Record& own = moves_.at(move.shard);
  if (!own.counts) {
    own.counts = static_cast<std::int64_t>(jobs_of(move.shard).size());
    counted_ -= *own.counts;
  }
  return std::to_string(*own.counts);
}

Status FakeMoves::empty_counts(const ShardMove& move) {
  if (auto mine = fenced(move); !mine) return mine;
  moves_.at(move.shard).counts = 0;
  return Unit{};
}

Status FakeMoves::add_counts(const ShardMove& move, const std::string& counts) {
  if (auto mine = fenced(move); !mine) return mine;
  if (!std::exchange(moves_.at(move.shard).is_counted, true)) counted_ += std::stoll(counts);
  return Unit{};
}

// Copying -------------------------------------------------------------------------------------------------------------

void FakeMoves::log(JobId job) {
  ++log_;
  if (published_.contains(shard_of(job)) && slots_.contains(shard_of(job)))
    logged_.push_back({log_, job, database_.copy_of(job)});
}

Status FakeMoves::publish(const ShardMove& move) {
  if (auto mine = fenced(move); !mine) return mine;
  published_.insert(move.shard);
  return Unit{};
}

void FakeMoves::make_slot(Shard shard, std::uint64_t call) {
  if (call > slot_dropped_[shard]) slots_.try_emplace(shard, log_);
}

Status FakeMoves::unpublish(const ShardMove& move) {
  if (auto mine = fenced(move); !mine) return mine;
  published_.erase(move.shard);
  return Unit{};
}

void FakeMoves::drop_slot(Shard shard, std::uint64_t call) {
  slot_dropped_[shard] = std::max(slot_dropped_[shard], call);
  slots_.erase(shard);
  std::erase_if(logged_, [shard](const Logged& entry) { return shard_of(entry.job) == shard; });
}

Result<std::int64_t> FakeMoves::behind(Shard shard, std::int64_t position) const {
  const auto slot = slots_.find(shard);
  if (slot == slots_.end()) return Error{ErrorCode::conflict, "the slot is gone", ""};
  return std::max<std::int64_t>(0, position - slot->second);
}

Status FakeMoves::subscribe(const ShardMove& move) {
  if (auto mine = fenced(move); !mine) return mine;
  if (!all_.at(static_cast<std::size_t>(move.source)).publishes(move.shard))
    return Error{ErrorCode::invalid, "there is no such publication", ""};
  subscriptions_.try_emplace(move.shard, Subscription{move.source});
  return Unit{};
}

ShardCopy::Subscription FakeMoves::subscription(Shard shard) const {
  const auto own = subscriptions_.find(shard);
  if (own == subscriptions_.end()) return ShardCopy::Subscription::none;
  return own->second.is_enabled ? ShardCopy::Subscription::enabled : ShardCopy::Subscription::disabled;
}

std::int64_t FakeMoves::failures(Shard shard) const {
  const auto own = subscriptions_.find(shard);
  return own == subscriptions_.end() ? 0 : own->second.failures;
}

bool FakeMoves::is_copied(Shard shard) const {
  const auto own = subscriptions_.find(shard);
  return own != subscriptions_.end() && own->second.is_copied;
}

Status FakeMoves::disable(const ShardMove& move) {
  if (auto mine = fenced(move); !mine) return mine;
  if (const auto own = subscriptions_.find(move.shard); own != subscriptions_.end()) own->second.is_enabled = false;
  return Unit{};
}

Status FakeMoves::unsubscribe(const ShardMove& move) {
  if (auto mine = fenced(move); !mine) return mine;
  subscriptions_.erase(move.shard);
  return Unit{};
}

bool FakeMoves::replicate(Shard shard) {
  const auto found = subscriptions_.find(shard);
  if (found == subscriptions_.end() || !found->second.is_enabled) return false;
  Subscription& own = found->second;
  FakeMoves& source = all_.at(static_cast<std::size_t>(own.source));
  const auto slot = source.slots_.find(shard);
  if (slot == source.slots_.end() || !source.published_.contains(shard)) return false;
  if (!own.is_copied) {
    if (!jobs_of(shard).empty()) return ++own.failures, false;  // duplicate keys
    for (const JobId job : source.jobs_of(shard)) database_.put_copy(*source.database_.copy_of(job));
    own.is_copied = true;
    own.applied = slot->second = source.log_;
    return true;
  }
  for (const Logged& entry : source.logged_) {
    if (entry.position <= own.applied || shard_of(entry.job) != shard) continue;
    entry.row ? database_.put_copy(*entry.row) : database_.drop_copy(entry.job);
    own.applied = slot->second = entry.position;
    return true;
  }
  own.applied = slot->second = source.log_;  // what is of other shards is confirmed, too
  return false;
}

}  // namespace tocsin

// That a due job starts before so many jobs of other types that became due after it.
#include <algorithm>
#include <utility>

#include "simulation/checker.h"

namespace tocsin {
namespace {

// Jobs of a rate in this time are as many as a type may start at once.
constexpr Duration kRateBurst = std::chrono::seconds(1);
constexpr Duration kFresh = std::chrono::milliseconds(2500);  // half the lookahead: not late enough for a catch-up rate

// The forms of claims, which take turns: fire, lease, claim.
int form_of(const BizType& type) { return type.is_instant() ? 0 : type.is_pull() ? 1 : 2; }

}  // namespace

// In the calm: jobs that the world names, by a bound that it knows.
void Checker::check_fairness(const FakeDatabase::Change& change, const Record& before) {
  if (change.kind != Kind::claimed && change.kind != Kind::fired) return;
  may_overtake_.erase(change.job.job_id);
  for (auto& [job, left] : may_overtake_) {
    const Job& waiting = records_.at(job).row;
    const bool is_overtaken = waiting.type_id != change.job.type_id && before.row.fire_at > waiting.fire_at &&
                              databases_.of(job).id == databases_.of(change.job.job_id).id;
    if (is_overtaken && left-- == 0)
      return fail("fair", "job " + std::to_string(job) + " waits while jobs of another type start that were due later");
  }
  check_turns(change, before);
}

void Checker::on_hinted(JobId job) {
  if (quiet_ && scheduler_.now() >= quiet_->from) overtaken_[job] = {};
}

// At any time without an outage: the oldest job of every type, if a node was told of it.
void Checker::check_turns(const FakeDatabase::Change& change, const Record& before) {
  if (!quiet_ || scheduler_.now() < quiet_->from) return;
  const BizType& served = types_.at(change.job.type_id);
  if (served.rate_per_s) {
    auto& starts = rated_[served.type_id];
    starts.push_back(scheduler_.now());
    while (starts.front() < scheduler_.now() - kRateBurst) starts.pop_front();
  }
  read_queues(databases_.of(change.job.job_id), change.db_now);
  for (const auto& [type, queue] : queues_) {
    if (type == served.type_id || before.row.fire_at <= queue.due) continue;
    const auto found = overtaken_.find(queue.oldest);
    if (found == overtaken_.end() || !may_start(types_.at(type), queue, change.db_now)) continue;
    Overtaken& its = found->second;
    ++its.jobs;
    its.types.insert(served.type_id);
    its.forms.insert({form_of(served), form_of(types_.at(type))});
    its.shards = std::max(its.shards, queue.shards.size());
    // Jobs in memory, few or many of a type, and backlog take four turns; in each the forms, in each the types, and of
    // a type that is backlog the shards.
    const std::size_t turns = 4 * its.forms.size() * (its.types.size() + 1) * its.shards;
    if (its.jobs > quiet_->on_their_way + turns * quiet_->batch)
      return fail("fair", "job " + std::to_string(found->first) + " of " + types_.at(type).name + " waits while " +
                              std::to_string(its.jobs) + " jobs of other types start that were due later" +
                              (is_calm_ ? "" : ", between faults"));
  }
}

// As they are when a statement begins to write: once for all rows that it changes.
void Checker::read_queues(const SimDatabase& database, WallTime db_now) {
  if (std::exchange(queues_read_, {database.id, db_now}) == std::pair(database.id, db_now)) return;
  queues_.clear();
  for (const auto& [id, row] : database.data.live()) {
    Queue& queue = queues_[row.job.type_id];
    queue.is_running = queue.is_running || row.job.status == JobStatus::running;
    if (row.job.fire_at <= db_now) queue.shards.insert(shard_of(id));
    if (std::pair(row.job.fire_at, id) < std::pair(queue.due, queue.oldest))
      queue.due = row.job.fire_at, queue.oldest = id;
  }
}

// Whether the oldest job of a type is within all limits, by what the checker knows. Jobs in overtaken_ are pending:
// every change of a row takes it out.
bool Checker::may_start(const BizType& type, const Queue& queue, WallTime db_now) {
  if (databases_.of(queue.oldest).data.is_locked(queue.oldest)) {
    on_locked(queue.oldest);  // a scan finds it again
    return false;
  }
  if (type.is_pull() || type.is_paused(db_now)) return false;
  if (!type.is_instant() && (!quiet_->has_slots || queue.is_running)) return false;
  if (type.drop_older_than && queue.due < db_now - *type.drop_older_than / 2) return false;
  if (!type.is_limited()) return true;
  // Permits of nodes that are gone are kept for them for a while, and those of other nodes and engines come with time.
  if (!quiet_->is_one_engine || scheduler_.now() < quiet_->from + hold_) return false;
  if (type.catch_up_rate_per_s && queue.due < db_now - kFresh) return false;
  const auto starts = rated_.find(type.type_id);
  const std::size_t started = starts == rated_.end() ? 0 : starts->second.size();
  return !type.rate_per_s || static_cast<double>(started) <= *type.rate_per_s - 3;
}

}  // namespace tocsin

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

void Checker::on_hinted(const std::string& node, JobId job) {
  if (!quiet_ || scheduler_.now() < quiet_->from) return;
  Overtaken& its = overtaken_[job];
  its.begin_anew();
  its.nodes.insert(node);
}

// Reading it again does not begin the count anew. What a node read ahead of its time counts if the row has never
// changed: otherwise memory may have an earlier time of it, and forgets the job when its claim fails.
void Checker::on_read(const std::string& node, JobId job) {
  const auto record = records_.find(job);
  if (!quiet_ || scheduler_.now() < quiet_->from || record == records_.end()) return;
  const Record& its = record->second;
  const bool is_due = its.row.fire_at <= databases_.of(job).data.now();
  if (is_due || !its.is_changed) overtaken_[job].nodes.insert(node);
}

std::uint64_t Checker::on_poll(const std::string& node, TypeId type) {
  polls_[++last_poll_] = {node, type};
  return last_poll_;
}

// At any time without an outage: the oldest job of every type, if a node knows of it.
void Checker::check_turns(const FakeDatabase::Change& change, const Record& before) {
  if (!quiet_ || scheduler_.now() < quiet_->from) return;
  const BizType& served = types_.at(change.job.type_id);
  if (served.rate_per_s) {
    auto& starts = rated_[served.type_id];
    starts.push_back(scheduler_.now());
    while (starts.front() < scheduler_.now() - kRateBurst) starts.pop_front();
  }
  pass_turn(served, databases_.of(change.job.job_id).id);
  read_queues(databases_.of(change.job.job_id), change.db_now);
  for (const auto& [type, queue] : queues_) {
    if (type == served.type_id || before.row.fire_at <= queue.due) continue;
    const auto found = overtaken_.find(queue.oldest);
    if (found == overtaken_.end() || !may_start(types_.at(type), queue, found->second, change.db_now)) continue;
    Overtaken& its = found->second;
    if (!its.nodes.contains(change.job.node.value_or(""))) continue;  // that node could not have started it
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

// The engines of a node share consumers, permits and rates: what one got, the others could not have.
void Checker::pass_turn(const BizType& served, DatabaseId database_id) {
  if (!served.is_pull() && !served.is_limited()) return;
  for (auto& [job, its] : overtaken_)
    if (databases_.of(job).id != database_id && records_.at(job).row.type_id == served.type_id) its.begin_anew();
}

// Whether a node that knows of the oldest job of a type may start it, by what the checker knows. Where the job runs,
// the end of its lease is its time. Every change of a row takes it out of overtaken_.
bool Checker::may_start(const BizType& type, const Queue& queue, const Overtaken& its, WallTime db_now) {
  const SimDatabase& database = databases_.of(queue.oldest);
  if (database.data.is_locked(queue.oldest) || database.data.refuses_claim(queue.oldest)) {
    on_locked(queue.oldest);  // a scan finds it again
    return false;
  }
  if (type.is_paused(db_now)) return false;
  if (type.drop_older_than && queue.due < db_now - *type.drop_older_than / 2) return false;
  return std::ranges::any_of(its.nodes, [&](const std::string& node) {
    if (keeps_ && !keeps_(node, queue.oldest)) return false;
    return has_poll(type, node) && has_slot(type, node, database.id) && is_within_limits(type, queue, node, db_now);
  });
}

bool Checker::has_poll(const BizType& type, const std::string& node) const {
  return !type.is_pull() ||
         std::ranges::any_of(polls_, [&](const auto& poll) { return poll.second == std::pair(node, type.type_id); });
}

// With f of n slots free a type may hold 2 f^2 / n, and one as long as any is free.
bool Checker::has_slot(const BizType& type, const std::string& node, DatabaseId database_id) {
  if (type.is_instant()) return true;
  auto& claims = slots_[{node, database_id}];
  std::erase_if(claims, [&](ClaimToken token) { return !holds_slot(token); });
  if (claims.size() >= quiet_->slots) return false;
  const auto of_type = static_cast<std::size_t>(std::ranges::count_if(
      claims, [&](ClaimToken token) { return records_.at(attempts_.at(token).job).row.type_id == type.type_id; }));
  const std::size_t left = quiet_->slots - claims.size() - 1;
  return of_type == 0 || of_type + 1 <= 2 * left * left / quiet_->slots;
}

// A claim holds its slot until its outcome is written, or until none can be written any more.
bool Checker::holds_slot(ClaimToken token) const {
  constexpr Duration kGivesUp = std::chrono::seconds(1);
  const Attempt& attempt = attempts_.at(token);
  const auto record = records_.find(attempt.job);
  if (attempt.is_orphan || attempt.is_leased || attempt.is_written || attempt.is_given_back) return false;
  if (record == records_.end()) return false;
  if (record->second.token != token && attempt.answer) return false;
  return attempt.is_started || scheduler_.now() < attempt.lease_end + kGivesUp;
}

// In one engine all permits and rates are its own; permits of nodes that are gone are kept for them for a while. A node
// of a cluster has what it was lent.
bool Checker::is_within_limits(const BizType& type, const Queue& queue, const std::string& node,
                               WallTime db_now) const {
  if (type.catch_up_rate_per_s && queue.due < db_now - kFresh) return false;
  if (!type.max_running && !type.rate_per_s) return true;
  const bool is_alone = quiet_->is_one_engine && scheduler_.now() >= quiet_->from + hold_;
  if (!is_alone || (type.max_running && queue.is_running)) return admits_ && admits_(node, type);
  const auto starts = rated_.find(type.type_id);
  const std::size_t started = starts == rated_.end() ? 0 : starts->second.size();
  return !type.rate_per_s || static_cast<double>(started) <= *type.rate_per_s - 3;
}

}  // namespace tocsin

#include "simulation/checker.h"

#include <algorithm>

#include "pipeline/engine_config.h"

namespace tocsin {
namespace {

constexpr std::size_t kKeptFailures = 5;
// What came together while nothing could run, at the slowest rate.
constexpr Duration kHeldBack = std::chrono::seconds(60);

}  // namespace

std::string in_ms(Duration time) { return std::to_string(static_cast<double>(time.count()) / 1000) + " ms"; }

const char* to_string(FakeDatabase::Change::Kind kind) {
  constexpr const char* kNames[] = {"created",   "replaced", "rescheduled", "hastened",  "revived",    "claimed",
                                    "fired",     "done",     "dead",        "retried",   "given_back", "buried",
                                    "cancelled", "dropped",  "extended",    "claim_lost"};
  return kNames[static_cast<int>(kind)];
}

void Checker::fail(const std::string& promise, const std::string& what) {
  trace_.line(scheduler_.now(), "BROKEN " + promise + ": " + what);
  if (failures_.size() < kKeptFailures) failures_.push_back(promise + ": " + what);
  scheduler_.stop();
}

// Commits -------------------------------------------------------------------------------------------------------------

void Checker::on_change(DatabaseId database_id, const FakeDatabase::Change& change) {
  const Job& job = change.job;
  trace_.line(scheduler_.now(), std::string("db ") + to_string(change.kind) + " job " + std::to_string(job.job_id) +
                                    " attempts " + std::to_string(job.attempts) + '/' +
                                    std::to_string(job.max_attempts) + " token " + std::to_string(change.token) +
                                    " fire_at " + in_ms(job.fire_at - change.db_now));
  ++changes_;
  overtaken_.erase(job.job_id);
  Watched& its = watched_[static_cast<std::size_t>(database_id)];
  its.high = std::max(its.high, change.db_now);
  if (databases_.of(job.job_id).id != database_id)
    return fail("I10", "job " + std::to_string(job.job_id) + " does not live where it was written");
  const auto found = records_.find(job.job_id);
  if ((change.kind == Kind::created) != (found == records_.end()))
    return fail("I10", "created twice, or out of nothing: job " + std::to_string(job.job_id));
  if (change.kind != Kind::created) {
    check_change(change, found->second);
    found->second.is_changed = true;
  }

  Record& record = records_[job.job_id];
  const ClaimToken token_before = record.token;
  record.row = job;
  record.token = job.status == JobStatus::running ? change.token : 0;
  if (change.kind == Kind::claim_lost) forget_claim(record, token_before);
  // Its attempts are counted anew.
  if (change.kind == Kind::revived || (change.kind == Kind::replaced && job.attempts == 0)) ++record.life;
  if (change.kind == Kind::hastened) record.is_hastened = true;
  // A revival may bring forward what was dead before its deadline.
  if (change.kind == Kind::revived && job.fire_at < job.action_time) record.is_hastened = true;
  if (change.kind == Kind::rescheduled || change.kind == Kind::replaced) record.is_hastened = false;
  if (change.kind == Kind::fired) ++starts_;
  if (change.kind == Kind::created && job.idempotency_key &&
      !keys_.emplace(job.biz_id, job.type_id, *job.idempotency_key).second)
    fail("key", "a second job under the same key: " + std::to_string(job.job_id));
  if (change.kind == Kind::created) record.came = scheduler_.now();
  if (change.kind == Kind::created && lost_ids_.erase(job.job_id) > 0) {
    ids_come_again_.insert(job.job_id);
    ++losses_.ids;
  }
  if (change.kind != Kind::claimed) return;
  Attempt attempt;
  attempt.job = job.job_id;
  attempt.number = job.attempts;
  attempt.life = record.life;
  attempt.node = job.node.value_or("");
  attempt.lease_end = scheduler_.now() + (job.fire_at - change.db_now);
  // The lease counts from the time that the statement read, which may be before a step. A step back makes no lease end
  // early, and is not looked for.
  const MonoTime read_at = scheduler_.now() - (databases_.of(job.job_id).data.now() - change.db_now);
  attempt.clock_steps = its.clock_stepped > read_at ? its.clock_steps - 1 : its.clock_steps;
  attempt.control_shocks = control_shocks_;
  attempt.change = changes_;
  attempt.is_hastened = record.is_hastened;
  attempt.claimed = scheduler_.now();
  attempt.is_orphan = databases_.of(job.job_id).faults.is_late();
  slots_[{attempt.node, database_id}].insert(change.token);
  if (!attempts_.emplace(change.token, attempt).second)
    fail("I4", "a token was used twice: job " + std::to_string(job.job_id));
}

void Checker::check_change(const FakeDatabase::Change& change, const Record& before) {
  check_edge(change, before);
  if (change.kind == Kind::claimed || change.kind == Kind::fired) check_claim(change, before);
  check_result(change, before);
  check_lease(change, before);
  check_calm(change, before);
  check_flow(change, before);
  check_fairness(change, before);
}

// The attempt does not count, and its number will be given again. Its handler may have started, or may still start.
void Checker::forget_claim(Record& record, ClaimToken lost) {
  Attempt& attempt = attempts_.at(lost);
  attempt.is_lost = true;
  record.started.erase({attempt.life, attempt.number});
  // The claim before it, whose lease had ended, is valid again, and no outcome of it will come.
  const auto older = attempts_.find(record.token);
  if (older != attempts_.end()) older->second.is_orphan = true;
}

void Checker::check_edge(const FakeDatabase::Change& change, const Record& before) {
  const JobStatus from = before.row.status;
  const auto is_legal = [&] {
    switch (change.kind) {
      case Kind::created:
        return true;
      case Kind::replaced:
      case Kind::rescheduled:
      case Kind::hastened:
      case Kind::cancelled:
        return from == JobStatus::pending;
      case Kind::revived:
        return from == JobStatus::dead;
      case Kind::claimed:
      case Kind::fired:
      case Kind::dropped:
        return !is_final(from);
      case Kind::done:
      case Kind::dead:
      case Kind::retried:
      case Kind::released:
      case Kind::marked_dead:
      case Kind::extended:
      case Kind::claim_lost:
        return from == JobStatus::running;
    }
    return false;
  };
  if (!is_legal())
    fail("I10", std::string(to_string(change.kind)) + " from " + std::string(to_string(from)) + ": job " +
                    std::to_string(change.job.job_id));
  if (change.kind == Kind::marked_dead &&
      (before.row.fire_at > change.db_now || before.row.attempts < before.row.max_attempts))
    fail("I6", "buried alive: job " + std::to_string(change.job.job_id));
}

void Checker::check_claim(const FakeDatabase::Change& change, const Record& before) {
  const Job& job = change.job;
  const std::string name = "job " + std::to_string(job.job_id);
  if (before.row.fire_at > change.db_now) {
    const bool is_lease = before.row.status == JobStatus::running;
    fail(is_lease ? "I4" : "I2", name + (is_lease ? " was taken from its lease, " : " was claimed early, ") +
                                     in_ms(before.row.fire_at - change.db_now));
  }
  if (!before.is_hastened && change.db_now < job.action_time)
    fail("I2", name + " was claimed " + in_ms(job.action_time - change.db_now) + " before its deadline");
  if (before.row.status == JobStatus::cancelled) fail("I3", name + " was claimed after its cancel");
  if (job.attempts != before.row.attempts + 1) fail("I6", name + ": the attempt was not counted");
  if (job.attempts > job.max_attempts) fail("I6", name + ": more attempts than allowed");
  if (before.row.status == JobStatus::running &&
      (job.errors.empty() || job.errors.size() < std::min<std::size_t>(16, before.row.errors.size() + 1)))
    fail("I10", name + ": nobody wrote down the lease that ended");
}

void Checker::check_result(const FakeDatabase::Change& change, const Record& before) {
  if (change.kind != Kind::done && change.kind != Kind::dead && change.kind != Kind::retried &&
      change.kind != Kind::released)
    return;
  const std::string name = "job " + std::to_string(change.job.job_id);
  if (change.token != before.token) return fail("I5", name + ": the result of a lost claim was written");
  const auto found = attempts_.find(change.token);
  if (found == attempts_.end()) return fail("I5", name + ": the result of a claim that never was");
  Attempt& attempt = found->second;
  const bool gives_back = change.kind == Kind::released;
  const bool said_not_started = attempt.answer && attempt.answer->kind == Outcome::Kind::not_started;
  if (gives_back && attempt.is_started && !said_not_started) fail("I6", name + ": given back although it started");
  if (gives_back && change.job.attempts != before.row.attempts - 1)
    fail("I6", name + ": given back, but the attempt stays counted");
  if (gives_back) {
    attempt.is_given_back = true;
    if (change.job.fire_at < change.db_now) released_.push_back({scheduler_.now(), change.job.job_id, attempt.node});
    return;
  }
  attempt.is_written = true;
  if (!attempt.answer) return fail("I5", name + ": a result before the handler gave one");
  using O = Outcome::Kind;
  const O said = attempt.answer->kind;
  const bool is_last = before.row.attempts >= before.row.max_attempts;
  const bool is_right = change.kind == Kind::done   ? said == O::done
                        : change.kind == Kind::dead ? said == O::dead || (said == O::retry && is_last)
                                                    : said == O::retry && !is_last;
  if (attempt.is_called && said == O::done && before.effects == 0) fail("effect", name + " is done without any");
  if (!is_right) fail("I5", name + ": the handler said something else than " + to_string(change.kind));
  if (change.kind == Kind::retried && attempt.answer->retry_after &&
      change.job.fire_at < change.db_now + *attempt.answer->retry_after)
    fail("I2", name + ": its retry is due too early");
}

std::size_t Checker::released_by_others(const std::string& node) const {
  std::set<JobId> jobs;
  for (const Released& each : released_) {
    if (each.node != node && scheduler_.now() - each.at < std::chrono::minutes(1)) jobs.insert(each.job);
  }
  return jobs.size();
}

void Checker::check_calm(const FakeDatabase::Change& change, const Record& before) {
  if (!is_calm_ || (change.kind != Kind::claimed && change.kind != Kind::fired)) return;
  const auto own = calm_bounds_.find(change.job.job_id);
  if (own == calm_bounds_.end()) return;  // from before the calm
  const Duration late = change.db_now - before.row.fire_at;
  if (late > own->second)
    fail("calm", "job " + std::to_string(change.job.job_id) + " was claimed " + in_ms(late) + " after its time");
}

// Handlers ------------------------------------------------------------------------------------------------------------

void Checker::on_start(const std::string& node, const ClaimedJob& claimed) { begin(node, claimed, false); }

void Checker::begin(const std::string& node, const ClaimedJob& claimed, bool is_leased) {
  const Job& job = claimed.job;
  const std::string name = "job " + std::to_string(job.job_id) + " attempt " + std::to_string(job.attempts);
  trace_.line(scheduler_.now(), node + " starts " + name);
  ++starts_;
  Watched& its = watched(job.job_id);
  its.high = std::max(its.high, databases_.of(job.job_id).data.now());
  const auto found = attempts_.find(claimed.token);
  if (found == attempts_.end()) return fail("I4", name + " started without a claim");
  Attempt& attempt = found->second;
  const auto record = records_.find(job.job_id);  // none: the job itself is lost
  const bool is_again = !attempt.is_lost && !record->second.started.emplace(attempt.life, attempt.number).second;
  if (attempt.is_started || is_again) fail("I4", name + " started twice");
  attempt.is_started = true;
  attempt.is_leased = is_leased;
  attempt.ends = claimed.lease_deadline;
  if (const auto type = types_.find(job.type_id); type != types_.end() && type->second.max_running) {
    running_[job.type_id].insert(claimed.token);
    check_running(type->second);
  }
  if (!attempt.is_hastened && its.high < job.action_time)
    fail("I2", name + " started " + in_ms(job.action_time - its.high) + " early");
  if (scheduler_.now() >= attempt.lease_end) fail("I4", name + " started after the end of its lease");
  // A step of the database's clock ends leases before their time; no node can know while the answer to its claim is
  // under way. And against a standby that lacks the claim there is only the start window.
  const bool has_window = claimed.start_by <= attempt.claimed + EngineConfig().start_window;
  const bool is_excused = attempt.clock_steps != its.clock_steps || (attempt.is_lost_to_standby && !has_window);
  if (record != records_.end() && record->second.is_cancel_acknowledged && !is_excused)
    fail("I3", name + " started after its cancel was acknowledged");
}

void Checker::on_answer(const ClaimedJob& claimed, const Outcome& outcome) {
  trace_.line(scheduler_.now(), "handler answers " + std::to_string(static_cast<int>(outcome.kind)) + " for job " +
                                    std::to_string(claimed.job.job_id));
  const auto found = attempts_.find(claimed.token);
  if (found == attempts_.end()) return fail("I4", "an answer to a claim that never was");
  Attempt& attempt = found->second;
  attempt.answer = outcome;
  attempt.answered = scheduler_.now();
  if (outcome.kind == Outcome::Kind::not_started && !attempt.is_lost)
    records_.at(attempt.job).started.erase({attempt.life, attempt.number});
}

void Checker::on_crash(const std::string& node) {
  for (auto& [token, attempt] : attempts_)
    if (attempt.node == node) attempt.is_orphan = true;
  std::erase_if(polls_, [&](const auto& poll) { return poll.second.first == node; });
}

void Checker::on_drained(const std::string& node) {
  for (const auto& [id, record] : records_) {
    if (record.row.status != JobStatus::running || record.row.node != node) continue;
    const auto claim = attempts_.find(record.token);
    if (claim != attempts_.end() && (claim->second.is_orphan || claim->second.is_leased)) continue;
    fail("handover", node + " left and kept the claim of job " + std::to_string(id));
  }
}

// Callers -------------------------------------------------------------------------------------------------------------

void Checker::on_created(JobId job) {
  const auto found = records_.find(job);
  if (found == records_.end())
    return fail("I1", "job " + std::to_string(job) + " was acknowledged and never committed");
  found->second.is_acknowledged = true;
}

void Checker::on_cancel_reply(const CancelReply& reply) {
  const std::string name = "job " + std::to_string(reply.job_id);
  trace_.line(scheduler_.now(), "caller hears cancel " + std::to_string(static_cast<int>(reply.kind)) + " for " + name);
  const auto found = records_.find(reply.job_id);
  if (reply.kind == CancelReply::Kind::not_found) {
    // Of the lost job, perhaps, when no other one had its id yet.
    if (found != records_.end() && !ids_come_again_.contains(reply.job_id))
      fail("I3", name + " exists, the cancel did not find it");
    return;
  }
  if (reply.kind != CancelReply::Kind::cancelled) return;
  if (found->second.row.status != JobStatus::cancelled)
    fail("I3", name + ": the cancel was acknowledged, the job is " + std::string(to_string(found->second.row.status)));
  if (found->second.is_cancel_acknowledged) fail("I3", name + ": two callers were told that they cancelled it");
  found->second.is_cancel_acknowledged = true;
}

// Bounds --------------------------------------------------------------------------------------------------------------

void Checker::faults_ended(Duration bound) {
  faults_ended_ = scheduler_.now();
  overdue_bound_ = bound;
}

void Checker::check_overdue() {
  for (const SimDatabase& database : databases_) {
    for (const auto& [id, row] : database.data.live()) {
      if (!records_.contains(id)) return fail("I10", "out of nothing: job " + std::to_string(id));
      const MonoTime since = std::max(*faults_ended_, records_.at(id).came);
      const Duration late = std::min<Duration>(database.data.now() - row.job.fire_at, scheduler_.now() - since);
      const auto type = types_.find(row.job.type_id);
      const bool is_known = type != types_.end();
      const bool is_limited = is_known && type->second.is_limited();
      if (late > *overdue_bound_ + (is_limited ? kHeldBack : Duration(0)))
        return fail("live", "job " + std::to_string(id) + " of " + (is_known ? type->second.name : "") + " (" +
                                std::string(to_string(row.job.status)) + ") is overdue by " + in_ms(late) +
                                " without any fault");
      const auto claim = attempts_.find(records_.at(id).token);
      if (claim != attempts_.end() && !claim->second.is_orphan)
        check_claim_is_held("job " + std::to_string(id), claim->second);
    }
  }
}

// After the claim memory is a promise. Without faults claims start and outcomes are written at once; what was forgotten
// before the faults ended has left its row running.
void Checker::check_claim_is_held(const std::string& name, const Attempt& attempt) {
  constexpr Duration kLong = std::chrono::seconds(1);
  const auto waits_since = [&](MonoTime time) { return scheduler_.now() - std::max(time, *faults_ended_); };
  // What was claimed before the refusal ended may be given up by its node, which counts the lease from an earlier time
  // than the store: then neither its outcome nor its release is written.
  const auto refused_until = refused_until_.find(attempt.job);
  const bool is_refused = refused_until != refused_until_.end() && attempt.claimed < refused_until->second;
  const bool is_given_up = is_refused && scheduler_.now() >= attempt.lease_end;
  if (attempt.answer && !is_given_up && waits_since(attempt.answered) > kLong)
    fail("live", name + ": its handler has answered and nobody wrote it down");
  const bool is_trusted =
      scheduler_.now() < attempt.lease_end - kLong && attempt.clock_steps == watched(attempt.job).clock_steps;
  if (!attempt.is_started && is_trusted && !is_refused && waits_since(attempt.claimed) > kLong)
    fail("live", name + " was claimed and never started");
}

void Checker::check_end() {
  check_effects();
  for (const auto& [id, record] : records_) {
    const std::string name = "job " + std::to_string(id);
    const auto row = databases_.of(id).data.find(id);
    if (!row) {
      fail("I1", name + " is gone");
    } else if (!is_final(row->status)) {
      fail("I1", name + " never ended: " + std::string(to_string(row->status)));
    } else if (row->status != record.row.status) {
      fail("I10", name + " has another status than its last change");
    } else if (row->status == JobStatus::dead && row->errors.empty()) {
      fail("I10", name + " is dead and nobody knows why");
    }
  }
  std::int64_t total = 0;
  for (const SimDatabase& database : databases_)
    for (const TypeCount& count : database.data.counts()) total += count.n;
  if (total != static_cast<std::int64_t>(records_.size()))
    fail("I1", "jobs created: " + std::to_string(records_.size()) + ", jobs there: " + std::to_string(total));
}

}  // namespace tocsin

// What the checker knows of SQL functions: their effects belong to the transactions that end their jobs.
#include "simulation/checker.h"

namespace tocsin {

void Checker::on_queued(const ClaimedJob& claimed) {
  const std::string name = "job " + std::to_string(claimed.job.job_id);
  trace_.line(scheduler_.now(), name + " waits for the call of its function");
  const auto found = attempts_.find(claimed.token);
  if (found == attempts_.end()) return fail("I4", name + " was queued without a claim");
  if (found->second.is_started) fail("I4", name + " was queued twice");
  found->second.is_started = found->second.is_called = true;
  found->second.ends = claimed.lease_deadline;
}

// Whatever a crash or a standby has lost: a claim that is gone is no excuse, for the transaction can see that.
void Checker::on_call(const ClaimedJob& claimed, const Outcome& outcome) {
  const std::string name = "job " + std::to_string(claimed.job.job_id);
  trace_.line(scheduler_.now(), "the function of " + name + " is called");
  ++starts_;
  const auto found = records_.find(claimed.job.job_id);
  if (found == records_.end()) return fail("effect", name + ": there is no such job any more");
  Record& record = found->second;
  Watched& its = watched(claimed.job.job_id);
  its.high = std::max(its.high, databases_.of(claimed.job.job_id).data.now());
  const Attempt& attempt = attempts_.at(claimed.token);
  if (record.is_cancel_acknowledged) fail("I3", name + ": its function was called after its cancel was acknowledged");
  if (!attempt.is_hastened && its.high < claimed.job.action_time) fail("I2", name + ": its function was called early");
  if (!record.started.emplace(attempt.life, attempt.number).second) fail("I4", name + ": called twice in one attempt");
  if (outcome.kind == Outcome::Kind::done && ++record.effects > 1) fail("effect", name + " had it twice");
  if (record.token != claimed.token) fail("effect", name + ": its function was called under a claim that is gone");
  on_answer(claimed, outcome);
}

void Checker::check_effects() {
  for (const auto& [id, record] : records_) {
    const auto type = types_.find(record.row.type_id);
    if (type == types_.end() || !type->second.starts_in_database()) continue;
    const int expected = record.row.status == JobStatus::done ? 1 : 0;
    if (record.effects != expected)
      fail("effect", "job " + std::to_string(id) + " is " + std::string(to_string(record.row.status)) + " and had " +
                         std::to_string(record.effects));
  }
}

}  // namespace tocsin

// What the checker knows of consumers: when their word counts.
#include <algorithm>

#include "simulation/checker.h"

namespace tocsin {
namespace {

constexpr Duration kDrift = std::chrono::milliseconds(5);  // of the longest lease

}  // namespace

void Checker::on_lease(const std::string& node, const ClaimedJob& claimed) { begin(node, claimed, true); }

void Checker::check_lease(const FakeDatabase::Change& change, const Record& before) {
  const auto found = attempts_.find(change.token);
  if (change.kind == Kind::extended && found == attempts_.end())
    return fail("lease", "an extension of a claim that never was");
  if (found == attempts_.end() || !found->second.is_leased) return;
  Attempt& attempt = found->second;
  const std::string name = "job " + std::to_string(change.job.job_id);
  switch (change.kind) {
    case Kind::extended:
      if (change.token != before.token) fail("lease", name + ": a lost lease was extended");
      attempt.lease_end = scheduler_.now() + (change.job.fire_at - change.db_now);
      attempt.ends = std::min<MonoTime>(attempt.ends, attempt.lease_end - kDrift);
      [[fallthrough]];
    case Kind::done:
    case Kind::dead:
    case Kind::retried:
      if (before.row.fire_at <= change.db_now)
        fail("lease", name + ": " + to_string(change.kind) + " by a consumer whose lease had ended");
      return;
    default:
      return;
  }
}

void Checker::on_lease_reply(const ClaimedJob& claimed, LeaseReply reply) {
  const std::string name = "job " + std::to_string(claimed.job.job_id);
  trace_.line(scheduler_.now(),
              std::string("consumer hears ") + (reply == LeaseReply::applied ? "ok" : "stale") + " for " + name);
  Attempt& attempt = attempts_.at(claimed.token);
  if (reply == LeaseReply::applied) {
    if (!attempt.is_written && !attempt.is_lost) fail("lease", name + ": ok, and nothing was written");
    return;
  }
  const auto record = records_.find(claimed.job.job_id);
  if (record == records_.end() || record->second.token != claimed.token) return;
  // The database may have judged by another clock than it shows now.
  if (watched_[static_cast<std::size_t>(databases_.of(claimed.job.job_id).id)].clock_stepped >= attempt.answered)
    return;
  // Nothing makes a lease longer but its consumer, who is listening.
  if (record->second.row.fire_at > databases_.of(claimed.job.job_id).data.now())
    fail("lease", name + ": refused, although the lease holds");
}

void Checker::on_lease_left(const ClaimedJob& claimed) { attempts_.at(claimed.token).is_orphan = true; }

}  // namespace tocsin

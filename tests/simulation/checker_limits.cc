// What the checker knows of limits, rates, pauses and of what is too late.
#include "simulation/checker.h"

namespace tocsin {
namespace {

constexpr Duration kLookahead = std::chrono::seconds(5);

}  // namespace

void Checker::on_types(const std::vector<BizType>& types, Duration hold) {
  hold_ = hold;
  overtaken_.clear();  // jobs of a type that is paused leave memory
  for (const BizType& type : types) {
    if (type.paused && !types_[type.type_id].paused) paused_at_[type.type_id] = scheduler_.now();
    types_[type.type_id] = type;
  }
}

// A job runs from its start to its answer, or to the end of its lease: then another node may run it anyway. An
// extension is not counted: consumers of types with a limit may be unlucky in their nodes (docs/adr/0018).
void Checker::check_running(const BizType& type) {
  auto& running = running_[type.type_id];
  std::erase_if(running, [&](ClaimToken token) {
    const Attempt& attempt = attempts_.at(token);
    // A lease is over when its database says so, whatever its clock did, and whatever a standby has not heard of.
    const bool is_shaken =
        attempt.is_leased && (attempt.is_lost || attempt.clock_steps != watched(attempt.job).clock_steps);
    return attempt.answer || scheduler_.now() >= attempt.ends || attempt.control_shocks != control_shocks_ || is_shaken;
  });
  // A step of the control database's clock ends grants before their time, as it does leases; a standby may have those
  // of before.
  if (control_shocks_ > 0 && scheduler_.now() < control_shaken_ + hold_) return;
  if (running.size() > static_cast<std::size_t>(*type.max_running))
    fail("limit", std::to_string(running.size()) + " jobs of " + type.name + " run, max_running is " +
                      std::to_string(*type.max_running));
}

void Checker::check_rate(const BizType& type, double rate, std::deque<MonoTime>& starts, const char* what) {
  constexpr double kNodes = 3, kSlack_s = 0.1;
  constexpr Duration kWindow = std::chrono::seconds(10);
  starts.push_back(scheduler_.now());
  while (starts.front() < scheduler_.now() - kWindow) starts.pop_front();
  // In any span of time: what the rate brings, and what had come together before: a second's worth, or one per node.
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const double span = std::chrono::duration<double>(scheduler_.now() - starts[i]).count();
    const double n = static_cast<double>(starts.size() - i);
    if (n > rate * (span + kSlack_s + 1) + kNodes)
      return fail("limit", std::to_string(n) + " starts of " + type.name + " in " + std::to_string(span) + " s, " +
                               what + " is " + std::to_string(rate));
  }
}

void Checker::check_flow(const FakeDatabase::Change& change, const Record& before) {
  constexpr Duration kSoon = std::chrono::seconds(3);
  const auto known = types_.find(change.job.type_id);
  if (known == types_.end()) return;
  const BizType& type = known->second;
  const std::string name = "job " + std::to_string(change.job.job_id) + " of " + type.name;
  const Duration late = change.db_now - before.row.fire_at;
  if (change.kind == Kind::dropped && !type.is_too_late(before.row.fire_at, change.db_now))
    fail("late", name + " was dropped although it is only " + in_ms(late) + " late");
  if (!faults_ended_ || (change.kind != Kind::claimed && change.kind != Kind::fired)) return;
  // What was let go before the faults ended counts when its call arrives, however long that was on its way; and a node
  // learns that the database's clock was set from the answer to a scan that was sent afterwards.
  const bool is_settled = scheduler_.now() > *faults_ended_ + kSoon;
  if (!is_settled) return;
  // In the calm by no more than a claim takes.
  const Duration most_late = type.drop_older_than.value_or(Duration::max() / 2) + (is_calm_ ? kSoon / 30 : kSoon);
  if (late > most_late) fail("late", name + " runs, " + in_ms(late) + " late");
  if (type.rate_per_s) check_rate(type, *type.rate_per_s, paced_[type.type_id], "rate_per_s");
  // Of a pull type a job that was found in time may wait for a consumer for so long.
  if (type.catch_up_rate_per_s && !type.is_pull() && late > kLookahead + 4 * kSoon)
    check_rate(type, *type.catch_up_rate_per_s, caught_up_[type.type_id], "catch_up.rate_per_s");
  if (is_calm_ && type.is_paused(change.db_now) && scheduler_.now() > paused_at_[type.type_id] + kSoon / 10)
    fail("pause", name + " starts while its type is paused");
}

}  // namespace tocsin

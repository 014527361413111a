#include "maintenance/housekeeping.h"

#include <spdlog/spdlog.h>

#include <algorithm>

#include "base/random.h"
#include "postgres/pg_type_store.h"

namespace tocsin {
namespace {

constexpr Duration kTurn = std::chrono::seconds(1);
// The registry is read this often without a notification, because notifications can be lost.
constexpr Duration kReload = std::chrono::seconds(3);
constexpr Duration kFlush = std::chrono::seconds(10);  // a killed node loses what was recorded since
constexpr Duration kHorizonRest = std::chrono::seconds(10);
constexpr Duration kZoneDaysRest = std::chrono::minutes(5);
constexpr auto kMaintenance = std::chrono::minutes(10);
constexpr auto kMaintenanceRetry = std::chrono::minutes(1);
constexpr auto kSettled = std::chrono::seconds(10);  // after the start, so that it does not delay the first jobs
// Deleting a file of half a gigabyte may keep the disk from flushing anything else for a tenth of a second.
constexpr auto kBetweenDrops = std::chrono::seconds(30);
constexpr auto kCheck = std::chrono::seconds(30);       // settings change without a new connection
constexpr auto kPooledCheck = std::chrono::seconds(3);  // and behind a pooler the server does

// What a promotion loses of its writes is done again, but for some histograms. If its commits waited for a standby,
// none of its reads would be answered while the standby is down, and the database would seem to be down.
SessionConfig without_standby(SessionConfig session) {
  session.waits_for_standby = false;
  return session;
}

}  // namespace

Housekeeping::Housekeeping(HousekeepingConfig config, const Clock& clock, Callbacks callbacks)
    : config_(std::move(config)),
      clock_(clock),
      callbacks_(std::move(callbacks)),
      session_(without_standby(config_.session)),
      next_maintenance_(clock.now() + kSettled),
      next_flush_(clock.now() + kFlush),
      next_horizon_(clock.now() + kHorizonRest),
      next_zone_days_(clock.now() + kHorizonRest) {}

Status Housekeeping::start() {
  if (auto done = prepare(); !done) return done;
  if (auto done = fold_and_reload(true); !done) return done;
  start_later();
  return Unit{};
}

// Only what the first finish needs may keep a node from starting; the rest can wait for a better moment.
Status Housekeeping::prepare() {
  // Asks on this session, which stays open. The check opens a new one: a server that refuses one more connection still
  // serves the node.
  Status answer = PgMaintenance(session_).ping();
  if (!answer && answer.error().field == kUnreachable) return answer;
  if (answer) callbacks_.answered();
  if (auto done = callbacks_.check(); !done) {
    is_prepared_ = false;
    if (done.error().code == ErrorCode::invalid) callbacks_.refused(done.error());
    return done;
  }
  is_check_wanted_ = false;
  checked_at_ = clock_.now();
  const bool is_new = !is_prepared_ || session_.connections() != prepared_connection_;
  if (is_new) {
    if (auto done = prepare_history(); !done) return done;
  }
  // A promotion behind a pooler is no new connection.
  if (is_new || session_.is_pooled()) {
    if (auto done = PgMaintenance(session_).raise_ids(); !done) return done;
  }
  if (!is_new) return Unit{};
  is_prepared_ = true;
  prepared_connection_ = session_.connections();
  callbacks_.checked();
  return Unit{};
}

// After a new connection another server may answer, with other settings or an older state.
bool Housekeeping::is_check_due() const {
  return is_check_wanted_ || session_.connections() != prepared_connection_ ||
         clock_.now() - checked_at_ >= (session_.is_pooled() ? kPooledCheck : kCheck);
}

void Housekeeping::start_later() {
  worker_.start("housekeeping", [this] { run(); });
}

void Housekeeping::reload_types() {
  is_reload_wanted_ = true;
  worker_.wake();
}

void Housekeeping::run() {
  MonoTime next_reload = clock_.now() + kReload;
  const auto rest = [&] {
    const Duration until_reload = std::max(next_reload - clock_.now(), Duration(0));
    const bool is_quiet = !has_counts_to_fold_ && !is_check_wanted_;
    return is_quiet ? until_reload : std::min(kTurn, until_reload);
  };
  while (worker_.wait_for(rest())) {
    const bool reload = is_reload_wanted_.exchange(false) || clock_.now() >= next_reload;
    if (reload) next_reload = clock_.now() + kReload;
    Status done = is_check_due() ? prepare() : Unit{};
    if (done) done = fold_and_reload(reload);
    if (done && clock_.now() >= next_flush_) {
      done = flush_reports();
      if (done) done = count_types();
    }
    if (done && clock_.now() >= next_horizon_) done = count_horizon();
    if (done && clock_.now() >= next_zone_days_) done = keep_zone_days();
    if (done && clock_.now() >= next_maintenance_) done = maintain();
    if (!done) {
      is_check_wanted_ = true;
      callbacks_.failed(done.error());
    }
  }
  // The engine has stopped, so this is the last flush. What cannot be written now is lost; a database that failed a
  // moment ago is not waited for.
  if (is_check_wanted_) return;
  if (auto done = flush_reports(); done && is_prepared_) static_cast<void>(PgMaintenance(session_).fold_counts());
}

// Histograms that were sent are sent again under the same number until the database confirms them; only then are new
// ones taken.
Status Housekeeping::flush_reports() {
  if (!is_prepared_) return Unit{};
  next_flush_ = clock_.now() + kFlush;
  if (unflushed_.empty()) {
    unflushed_ = callbacks_.take_histograms();
    ++flushes_;
  }
  if (unflushed_.empty()) return Unit{};
  const auto written = PgMaintenance(session_).flush_histograms(config_.node_id, flushes_, unflushed_);
  if (!written) return written.error();
  unflushed_.clear();
  callbacks_.answered();
  return Unit{};
}

Status Housekeeping::fold_and_reload(bool reload) {
  if (reload) {
    PgTypeStore registry(session_);
    if (auto done = callbacks_.reload_types(registry); !done) return done;
  }
  // Counts are right whether they are folded or not, so while nothing changes they are checked seldom.
  if (has_counts_to_fold_ || reload) {
    auto folded = PgMaintenance(session_).fold_counts();
    if (!folded) return folded.error();
    has_counts_to_fold_ = *folded > 0;
    callbacks_.answered();
  }
  if (!reload || !is_prepared_) return Unit{};
  // A clock that was set forward by more than two days: every finish would fail until the next maintenance.
  const auto has_today = PgMaintenance(session_).has_history_today();
  if (!has_today) return has_today.error();
  if (*has_today) return Unit{};
  if (!are_cancels_held_) spdlog::warn("the database's clock shows a day that lacks history tables; creating them");
  return prepare_history();
}

// Without tables of cancelled jobs only cancels fail: that keeps no node from starting, nor from its other tasks. While
// today's is missing each reload tries again.
Status Housekeeping::prepare_history() {
  const auto are_all_made = PgMaintenance(session_).prepare_history();
  if (!are_all_made) return are_all_made.error();
  const bool was_held = std::exchange(are_cancels_held_, !*are_all_made);
  if (are_cancels_held_ && !was_held)
    spdlog::warn(
        "another transaction keeps the history tables of cancelled jobs from being made, such as one that "
        "called tocsin.cancel_job and is open. If today's is missing, other cancels are unavailable until it ends");
  return Unit{};
}

Status Housekeeping::count_types() {
  auto states = PgMaintenance(session_).type_states();
  if (!states) return states.error();
  callbacks_.counted(std::move(*states));
  return Unit{};
}

// One type in each turn, until all types have been counted in the last minute.
Status Housekeeping::count_horizon() {
  const auto has_counted = PgMaintenance(session_).count_horizon();
  if (!has_counted) return has_counted.error();
  next_horizon_ = clock_.now() + (*has_counted ? Duration(0) : kHorizonRest);
  return Unit{};
}

// A few days in each turn, until every past day is stored.
Status Housekeeping::keep_zone_days() {
  const auto has_kept = PgMaintenance(session_).keep_zone_days();
  if (!has_kept) return has_kept.error();
  next_zone_days_ = clock_.now() + (*has_kept ? Duration(0) : kZoneDaysRest);
  return Unit{};
}

Status Housekeeping::maintain() {
  // Soon again after a failure, but not at once: what blocks it, a backup for instance, takes a while.
  next_maintenance_ = clock_.now() + kMaintenanceRetry;
  PgMaintenance maintenance(session_);
  // A lock time-out is an answer of the database, too.
  const auto has_answered = [this](const auto& result) {
    if (result || result.error().code != ErrorCode::unavailable) callbacks_.answered();
    return static_cast<bool>(result);
  };
  if (auto done = prepare_history(); !has_answered(done)) return done;
  if (auto done = maintenance.forget_dead_nodes(); !has_answered(done)) return done;
  if (auto done = maintenance.forget_removed_types(); !has_answered(done)) return done;
  if (auto done = maintenance.forget_old_reports(); !has_answered(done)) return done;
  auto found = maintenance.old_history(config_.retain_days);
  if (!has_answered(found)) return found.error();
  witness_.see(found->today, clock_.now());
  auto& old = found->days;
  withhold(old);
  // Drops one table at a time, a random one: several nodes seldom choose the same, and a locked table delays no other.
  if (!old.empty()) {
    const PgMaintenance::OldDay& day = old[Random(true_random()).below(old.size())];
    const auto is_dropped = maintenance.drop_history(day);
    if (!has_answered(is_dropped)) return is_dropped.error();
    if (*is_dropped) spdlog::info("retention: dropped {}", day.table);
  }
  next_maintenance_ = clock_.now() + (old.size() > 1 ? Duration(kBetweenDrops) : Duration(kMaintenance));
  return Unit{};
}

// Removes from `old` the days that only the database's clock calls old: their tables are kept.
void Housekeeping::withhold(std::vector<PgMaintenance::OldDay>& old) {
  const std::size_t withheld =
      std::erase_if(old, [&](const auto& day) { return !witness_.confirms(day.past, clock_.now()); });
  if (withheld == std::exchange(withheld_, withheld)) return;
  if (withheld > 0)
    spdlog::warn(
        "retention: {} history tables are past their retention by the database's clock alone and are kept; is that "
        "clock "
        "right? They are dropped when as many later days have finished jobs, or this node has run for as long",
        withheld);
  callbacks_.withheld(withheld);
}

}  // namespace tocsin

#include "simulation/troubles.h"

#include <algorithm>
#include <utility>

namespace tocsin {

using namespace std::chrono_literals;

void Troubles::begin() {
  const auto rate = [&](double most) { return world_.chance(0.5) ? 0 : most * world_.random.unit(); };
  for (SimDatabase& database : world_.databases) {
    database.faults.rates = {rate(0.1), rate(0.05), rate(0.05), rate(0.1), rate(0.05), rate(0.02)};
    database.data.on_change = [this, &database](const FakeDatabase::Change& change) {
      world_.checker.on_change(database.id, change);
      if (crash_armed_ == &database && change.kind == FakeDatabase::Change::Kind::claimed) crash_after_claim(database);
    };
  }
  crashes_ = rate(0.4), clock_steps_ = rate(0.4), outages_ = rate(0.3), failovers_ = rate(0.2), cuts_ = rate(0.3),
  locks_ = rate(1), pauses_ = rate(0.3), freezes_ = rate(0.3), slow_starts_ = rate(1), refusals_ = rate(0.5);
  if (world_.has_functions) outages_ = std::max(outages_, 0.2);  // only crashes lose their claims
  end_ = MonoTime(20s + world_.up_to(40s));
  for (SimDatabase& database : world_.databases) database.faults.end_at(end_);
  if (world_.chance(0.3)) {
    lull_ = world_.balanced_within() + 5s + world_.up_to(15s);
    second_spell_ = 5s + world_.up_to(15s);
  }
  plan();
}

void Troubles::lull() {
  world_.trace.line(world_.scheduler.now(), "a lull");
  const MonoTime begin = world_.scheduler.now();
  crash_armed_ = nullptr;
  for (SimDatabase& database : world_.databases) database.faults.come_back();
  for (const auto& node : world_.nodes) {
    if (node->is_draining()) node->crash();
    if (!node->is_up()) node->start(world_.catalog);
    node->hurry_handlers(3s);
  }
  world_.begin_quiet(world_.balanced_within());
  world_.pass(world_.balanced_within() + 1s);
  if (world_.is_sound()) rush_in();
  world_.scheduler.run_until(begin + lull_);
  world_.checker.quiet_ends();
  world_.trace.line(world_.scheduler.now(), "the lull is over");
  end_ = world_.scheduler.now() + std::exchange(second_spell_, Duration(0));
  lull_ = Duration(0);
  for (SimDatabase& database : world_.databases) database.faults.end_at(end_);
  plan();
}

// Far more of one type than memory holds, and single jobs of the others in the midst of it.
void Troubles::rush_in() {
  const auto crowd = std::ranges::find_if(world_.types, [](const BizType& type) {
    return type.is_instant() && !type.is_limited() && !type.drop_older_than && !type.paused;
  });
  if (crowd == world_.types.end()) return;
  const auto create_others = [&](Duration from_now) {
    for (const BizType& type : world_.types)
      if (type.type_id != crowd->type_id && !type.paused) world_.callers->create_at(from_now, type.type_id);
  };
  create_others(1005ms);
  for (int wave = 0; wave < 3; ++wave)
    world_.callers->rush_at(1s + wave * 10ms, static_cast<int>(4 * world_.config.capacity), crowd->type_id);
  create_others(1015ms);
}

MonoTime Troubles::until(Duration most) {
  return std::min<MonoTime>(end_, world_.scheduler.now() + world_.up_to(most));
}

void Troubles::boot(SimNode& node) {
  if (world_.chance(slow_starts_)) {
    SimDatabase& slow = world_.any_database();
    slow.faults.hold_scans_until(world_.scheduler.now() + world_.up_to(15s));
    // More hints than fit, before the node knows the time.
    if (world_.chance(0.2)) {
      world_.scheduler.after(world_.up_to(1s), [this, &slow] {
        world_.callers->rush(static_cast<int>(2 * world_.config.capacity), {}, slow.id);
      });
    }
  }
  node.start(world_.catalog);
}

void Troubles::plan() {
  world_.scheduler.after(world_.up_to(4s), [this] {
    if (world_.scheduler.now() >= end_) return;
    strike();
    plan();
  });
}

void Troubles::strike() {
  SimNode& node = world_.any_node();
  SimDatabase& database = world_.any_database();
  if (world_.chance(crashes_)) stop_node(node);
  if (world_.chance(freezes_) && node.is_up()) node.freeze_until(until(10s));
  if (world_.chance(cuts_)) cut_off(node, world_.any_database());
  if (world_.chance(clock_steps_)) step_clock(database);
  if (world_.chance(locks_)) lock_some_row(database);
  if (world_.chance(refusals_)) refuse_some_row(database);
  if (world_.chance(pauses_)) toggle_pause();
  if (world_.chance(failovers_)) fail_over(database);
  if (world_.chance(outages_)) outage(database);
}

void Troubles::stop_node(SimNode& node) {
  if (!node.is_up()) return;
  if (world_.chance(0.3)) {
    node.drain(world_.up_to(8s));
  } else {
    node.crash();
  }
  world_.scheduler.after(world_.up_to(8s), [this, &node] {
    if (!node.is_up() && world_.scheduler.now() < end_) boot(node);
  });
}

void Troubles::cut_off(SimNode& node, SimDatabase& database) {
  world_.trace.line(world_.scheduler.now(), node.name() + " is cut off from " + database.name());
  node.cut_off(database.id, until(12s));
}

// Databases -----------------------------------------------------------------------------------------------------------

void Troubles::down(SimDatabase& database, Duration length, const char* what) {
  world_.trace.line(world_.scheduler.now(), database.name() + what);
  database.faults.set_down_until(world_.scheduler.now() + length);
}

void Troubles::outage(SimDatabase& database) {
  const auto dice = world_.random.below(4);
  if (dice < 2) {
    down(database, world_.up_to(6s), " is down");
  } else if (dice == 2) {
    crash(database);
  } else {
    crash_armed_ = &database;
  }
}

// Asynchronous claims are for databases that are down for longer than the start window.
Duration Troubles::shortest_crash() const {
  return world_.config.async_claims ? world_.config.start_window : Duration(0);
}

void Troubles::crash(SimDatabase& database) {
  if (world_.scheduler.now() >= end_) return;
  // Half of the crashes are over before any node can see an error. Jobs whose claims are lost can be cancelled from
  // then on, however far their first claimers have come.
  const Duration length = shortest_crash() + (world_.chance(0.5) ? Duration(0) : world_.up_to(2s));
  const auto unclaimed = database.data.crash(database.wall.now());
  down(database, length, " crashes");
  world_.callers->cancel_later(unclaimed, length + (world_.chance(0.5) ? Duration(0) : world_.up_to(8s)));
}

// The worst moment: the answer to the claim has arrived, its handler has not begun, and the node stands still. Or it
// does not, and attempts wait for the call of their function.
void Troubles::crash_after_claim(SimDatabase& database) {
  crash_armed_ = nullptr;
  const bool stands_still = !world_.has_functions || world_.chance(0.5);
  for (const auto& node : world_.nodes)
    if (node->is_up() && stands_still) node->freeze_until(until(10s));
  world_.scheduler.after(1ms, [this, &database] { crash(database); });
}

// The primary dies, and its standby takes over. One that is synchronous has everything, so a takeover may be as short
// as a crash; another may have heard nothing for a while.
void Troubles::fail_over(SimDatabase& database) {
  if (!lagging_.insert(database.id).second) return;
  if (world_.chance(0.3)) {
    world_.checker.on_standby_lags(database.id);
    return promote(database, database.data.snapshot(), shortest_crash());
  }
  const Duration lag = world_.chance(0.7) ? world_.up_to(500ms) : world_.up_to(5s);
  world_.trace.line(world_.scheduler.now(), "the standby of " + database.name() + " hears no more");
  world_.checker.on_standby_lags(database.id);
  world_.scheduler.after(lag, [this, &database, standby = database.data.snapshot()] {
    promote(database, standby, world_.config.start_window);
  });
}

void Troubles::promote(SimDatabase& database, const FakeDatabase::Snapshot& standby, Duration shortest) {
  if (world_.scheduler.now() >= end_) return;
  lagging_.erase(database.id);
  // As in crash(): it may be over before any node can see an error.
  const Duration length = shortest + (shortest == Duration(0) && world_.chance(0.5) ? shortest : world_.up_to(2s));
  down(database, length, "'s standby takes over");
  const auto unclaimed = world_.checker.on_failover(database.id);
  database.data.restore(standby);
  world_.callers->cancel_later(unclaimed, length + world_.up_to(8s));
  if (world_.chance(0.3)) step_clock(database);  // another host
}

void Troubles::step_clock(SimDatabase& database) {
  const Duration size = world_.chance(0.5) ? world_.up_to(50ms) : world_.up_to(15s);
  const Duration by = world_.chance(0.5) ? size : -size;
  world_.trace.line(world_.scheduler.now(),
                    "the clock of " + database.name() + " is set by " + std::to_string(by.count()) + " us");
  database.wall.step(by);
  world_.checker.on_clock_step(database.id);
}

JobId Troubles::any_live(const SimDatabase& database) {
  const auto& live = database.data.live();
  if (live.empty()) return 0;
  auto row = live.begin();
  std::advance(row, world_.random.below(live.size()));
  return row->first;
}

// Statements that end it fail, and with them the ends of all jobs beside it; or those that claim it.
void Troubles::refuse_some_row(SimDatabase& database) {
  const JobId job = any_live(database);
  if (job == 0) return;
  const bool is_claim = world_.chance(0.5);
  world_.trace.line(world_.scheduler.now(),
                    (is_claim ? "the claim of job " : "the end of job ") + std::to_string(job) + " is refused");
  if (is_claim) {
    database.data.refuse_claim(job);
    world_.scheduler.at(until(8s), [&database, job] { database.data.accept_claim(job); });
    return;
  }
  database.data.refuse(job);
  world_.checker.on_refusal(job);
  world_.scheduler.at(until(8s), [this, &database, job] {
    database.data.accept(job);
    world_.checker.on_acceptance(job);
  });
}

void Troubles::lock_some_row(SimDatabase& database) {
  const JobId job = any_live(database);
  if (job == 0 || database.data.is_locked(job)) return;  // another transaction has it
  world_.trace.line(world_.scheduler.now(), "somebody locks job " + std::to_string(job));
  database.data.lock(job);
  world_.scheduler.at(until(8s), [&database, job] { database.data.unlock(job); });
}

void Troubles::toggle_pause() {
  BizType& type = world_.types[world_.random.below(world_.types.size())];
  type.paused = !type.paused;
  world_.trace.line(world_.scheduler.now(), type.name + (type.paused ? " is paused" : " goes on"));
  world_.publish_types();
}

void Troubles::end_all() {
  world_.trace.line(world_.scheduler.now(), "the faults end");
  slow_starts_ = 0;
  for (SimDatabase& database : world_.databases) database.faults.come_back();
  for (BizType& type : world_.types) type.paused = false;
  world_.publish_types();
  constexpr HandlerHabits kGood{0, 0, 0, 0.1, 0, 0};
  // Polls for types without jobs are short, so that two consumers can take all that waits.
  if (world_.consumers) world_.consumers->set_habits({0, 0, 0, 0.2, 0, 0.2, 20ms, 500ms});
  for (const auto& node : world_.nodes) {
    if (node->is_draining()) node->crash();
    if (!node->is_up()) boot(*node);
    node->set_habits(kGood);
    node->hurry_handlers(3s);
  }
}

}  // namespace tocsin

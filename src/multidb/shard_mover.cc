#include "multidb/shard_mover.h"

#include <algorithm>
#include <utility>

namespace tocsin {
namespace {

using State = ShardMove::State;

constexpr auto kPollInterval = std::chrono::milliseconds(200);
constexpr auto kCloseLook = std::chrono::milliseconds(5);
constexpr int kSwitchTries = 100;
constexpr auto kNodesHear = std::chrono::seconds(30);  // until all nodes have read the new map: many heartbeats
constexpr auto kSign = kThawLease / 4;                 // between extensions of the freeze

std::string shard_text(const ShardMove& move) { return "shard " + std::to_string(move.shard); }

std::string milliseconds(Duration length) {
  return std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(length).count()) + " ms";
}

}  // namespace

ShardMover::ShardMover(std::vector<MoveDatabase> databases, OpenMoveSession open_session, PacingClock& clock,
                       MoveOptions options, OnStep on_step)
    : databases_(std::move(databases)),
      open_session_(std::move(open_session)),
      clock_(clock),
      options_(std::move(options)),
      on_step_(std::move(on_step)) {
  for (const MoveDatabase& each : databases_)
    sessions_.emplace(each.database_id, open_session_(each.database_id, std::nullopt));
}

const MoveDatabase& ShardMover::database(DatabaseId database_id) const {
  return *std::ranges::find(databases_, database_id, &MoveDatabase::database_id);
}

Error ShardMover::about(DatabaseId database_id, const Error& error) const {
  return {error.code, "database " + name(database_id) + ": " + error.message, error.field};
}

Status ShardMover::retry_transient(const std::function<Status()>& step, bool is_whole) {
  std::string reported;
  for (auto trouble = clock_.now();;) {
    const auto began = clock_.now();
    Status done = step();
    const auto now = clock_.now();
    if (progress_at_ >= began) trouble = now;
    if (done || now - trouble > options_.patience) return done;
    const ErrorCode code = done.error().code;
    if (code == ErrorCode::invalid || (code == ErrorCode::superseded && !is_whole)) return done;
    if (reported != done.error().message) on_step_("trying again: " + done.error().message);
    reported = done.error().message;
    clock_.sleep(std::chrono::seconds(1));
  }
}

Status ShardMover::begin(Shard shard) {
  driver_.reset();
  failures_ = {};
  worker_trouble_.clear();
  sessions_.clear();
  for (const MoveDatabase& each : databases_)
    sessions_.emplace(each.database_id, open_session_(each.database_id, shard));
  for (auto& [database_id, session] : sessions_)
    if (auto done = retry_transient([&, database_id = database_id] { return at(database_id).end_others(); }); !done)
      return about(database_id, done.error());
  return Unit{};
}

Status ShardMover::recall(Shard shard) {
  const auto moves = under_way();
  if (!moves) return moves.error();
  is_begun_here_ = std::ranges::find(*moves, shard, &ShardMove::shard) == moves->end();
  if (!is_begun_here_) return Unit{};
  std::optional<ShardMove> lost;
  for (auto& [database_id, session] : sessions_) {
    if (database_id == 0) continue;
    const auto noted = session->store().noted(shard);
    if (!noted) return about(database_id, noted.error());
    if (*noted && (!lost || (*noted)->driver > lost->driver)) lost = **noted;
  }
  if (!lost) return Unit{};
  Status recalled = control().recall(*lost);
  if (!recalled && recalled.error().code == ErrorCode::invalid) {
    // The shard has moved on since: a command that was killed has left the record.
    for (const DatabaseId database_id : {lost->source, lost->target})
      if (database_id != 0)
        if (auto done = at(database_id).forget(*lost); !done) return about(database_id, done.error());
    return Unit{};
  }
  if (!recalled) return recalled;
  is_begun_here_ = false;
  say("the control database has lost the move of " + shard_text(*lost) + ", other databases remember it");
  return Unit{};
}

Result<std::optional<ShardMove>> ShardMover::take(Shard shard, std::optional<DatabaseId> target) {
  if (!driver_)
    if (auto done = recall(shard); !done) return done.error();
  auto taken = control().take(shard, target, driver_);
  if (taken && *taken)
    driver_ = (*taken)->driver;
  else if (!taken && taken.error().code == ErrorCode::in_doubt)
    driver_.reset();  // it may have another by now
  return taken;
}

Status ShardMover::move(Shard shard, DatabaseId target) {
  if (auto done = begin(shard); !done) return done;
  is_refused_ = false;
  Status done = retry_transient([&] { return continue_move(shard, target); }, /*is_whole=*/true);
  if (!done && is_refused_) take_back(shard);
  return done;
}

void ShardMover::take_back(Shard shard) {
  auto taken = take(shard, {});
  if (!taken || !*taken) return;
  if (auto done = roll_back(**taken); !done)
    say("the move stays recorded, because it could not be rolled back: " + done.error().message);
}

Status ShardMover::continue_move(Shard shard, DatabaseId target) {
  // Before anything is recorded; and again before the switch, for nodes come and go.
  const auto moves = under_way();
  if (!moves) return moves.error();
  const auto is_switched = [&](const ShardMove& each) { return each.shard == shard && each.state == State::switched; };
  if (std::ranges::none_of(*moves, is_switched))
    if (auto done = refuse_nodes_without(target); !done) return done;
  auto taken = take(shard, target);
  if (!taken) return taken.error();
  if (!*taken) {
    say("shard " + std::to_string(shard) + " lives in " + name(target));
    return Unit{};
  }
  ShardMove move = **taken;
  if (move.state == State::aborting)
    return Error{ErrorCode::invalid, shard_text(move) + " is being rolled back: end that first, with --abort", "shard"};
  if (auto done = note(move); !done) return done;
  if (move.state == State::copying) {
    // An earlier freeze may not have been ended.
    if (auto done = resume_at_source(move); !done) return done;
    say(shard_text(move) + ": from " + name(move.source) + " to " + name(move.target));
    if (auto done = copy(move); !done) return done;
  }
  if (move.state != State::switched)
    if (auto done = switch_over(move); !done) return done;
  return complete(move);
}

// The control database is written last: if this command ends in between, a node or the next command repeats the step.
Status ShardMover::resume_at_source(ShardMove& move) {
  if (auto done = retry_transient([&] { return at(move.source).unfreeze(move); }); !done)
    return about(move.source, done.error());
  return control().set_writable(move);
}

Status ShardMover::refuse_nodes_without(DatabaseId database_id) {
  const auto nodes = control().nodes_without(database_id);
  if (!nodes) return nodes.error();
  if (nodes->empty()) return Unit{};
  std::string names;
  for (const std::string& node : *nodes) names += (names.empty() ? "" : ", ") + node;
  return Error{ErrorCode::invalid,
               "not every node was started with the database " + name(database_id) + " (" + names +
                   "): they could not scan the shard; start them with all databases, then run this again",
               "to"};
}

Status ShardMover::wait_for_nodes() {
  const auto version = control().map_version();
  if (!version) return version.error();
  for (const auto began = clock_.now();;) {
    const auto behind = control().nodes_behind(*version);
    if (!behind) return behind.error();
    if (behind->empty()) return Unit{};
    if (clock_.now() - began > kNodesHear)
      return Error{ErrorCode::conflict, "the node " + behind->front() + " still works with the old shard map", ""};
    clock_.sleep(kPollInterval);
  }
}

Status ShardMover::note(const ShardMove& move) {
  for (const DatabaseId database_id : {move.source, move.target}) {
    if (database_id == 0) continue;  // its row is the control database's
    if (auto done = at(database_id).note(move); !done) {
      if (done.error().code == ErrorCode::superseded) static_cast<void>(confirm(move));
      return about(database_id, done.error());
    }
  }
  return confirm(move);
}

// This command may have been stopped since it became the driver, and the move may have ended: the databases have
// forgotten it then, and take the one that notes itself for its driver.
Status ShardMover::confirm(const ShardMove& move) {
  const auto now = take(move.shard, {});
  if (now && *now && (*now)->driver == move.driver) return Unit{};
  if (!now && now.error().code != ErrorCode::invalid) return now.error();
  // If the move is still under way, its records have the counts, and belong to its present driver.
  const auto moves = under_way();
  if (!moves) return moves.error();
  const bool is_under_way = std::ranges::any_of(*moves, [&](const ShardMove& each) {
    return each.shard == move.shard && each.source == move.source && each.target == move.target;
  });
  for (const DatabaseId database_id : {move.source, move.target})
    if (database_id != 0 && !is_under_way)
      if (auto done = at(database_id).forget(move); !done) return about(database_id, done.error());
  return Error{ErrorCode::superseded, "another driver has taken this move over", ""};
}

Status ShardMover::switch_over(ShardMove& move) {
  for (int tries = 0; tries < kSwitchTries; ++tries) {
    const auto done = try_switch(move);
    if (!done) return done.error();
    if (*done) return Unit{};
    clock_.sleep(std::chrono::seconds(1));
    // Days may have begun meanwhile.
    if (auto copied = copy(move); !copied) return copied;
  }
  return Error{ErrorCode::invalid,
               "the target did not catch up within a freeze of " + milliseconds(options_.longest_pause) + "; " +
                   shard_text(move) + " stays where it was, the copying continues: run this again at a quieter time",
               "shard"};
}

// Waits until the target has all changes of the frozen shard. False: not in time, or never, because the source has lost
// the slot. The shard is writable again before copy() copies everything anew.
Result<bool> ShardMover::wait_until_same(const ShardMove& move) {
  const auto began = clock_.now();
  auto signed_at = began;
  const auto is_all = copy_at(move.source).publishes_all(move);
  if (!is_all) return about(move.source, is_all.error());
  if (!*is_all) return false;
  const auto position = copy_at(move.source).position();
  if (!position) return about(move.source, position.error());
  while (clock_.now() - began < options_.longest_pause) {
    const auto behind = copy_at(move.source).behind(move, *position);
    if (!behind && behind.error().code == ErrorCode::conflict) return false;
    if (!behind) return about(move.source, behind.error());
    if (*behind == 0) return true;
    clock_.sleep(kCloseLook);
    if (clock_.now() - signed_at < kSign) continue;
    if (auto done = control().keep(move); !done) return done.error();
    signed_at = clock_.now();
  }
  return false;
}

// A long transaction in the target (a backup, a report) would keep the moved shard from being opened.
bool ShardMover::can_open_target(const ShardMove& move) {
  const Status done = at(move.target).can_open(move);
  if (!done) say("a transaction in " + name(move.target) + " stands in the way: " + done.error().message);
  return static_cast<bool>(done);
}

// False: the shard stays in the source.
Result<bool> ShardMover::try_switch(ShardMove& move) {
  if (auto done = refuse_nodes_without(move.target); !done) return done.error();
  if (!can_open_target(move)) return false;
  if (auto done = control().set_state(move, State::switching); !done) return done.error();
  const Status frozen = at(move.source).freeze(move);
  if (!frozen && !is_contention(frozen.error().code)) return about(move.source, frozen.error());
  const auto began = clock_.now();
  Result<bool> is_same = frozen ? wait_until_same(move) : Result<bool>(false);
  if (!is_same) return is_same.error();
  const bool is_in_time = *is_same || !frozen;
  if (*is_same) is_same = can_open_target(move);  // checked again, because the flip cannot be undone
  if (!*is_same) {
    if (!frozen) say("an open transaction stands in the way: " + frozen.error().message);
    if (!is_in_time) say("the target did not catch up in time: the shard stays in " + name(move.source));
    // The state first: no process may flip the map after this.
    if (auto back = control().set_state(move, State::copying); !back) return back.error();
    if (auto back = resume_at_source(move); !back) return back.error();
    return false;
  }
  if (auto flipped = control().flip(move); !flipped) return flipped.error();
  if (auto opened = retry_transient([&] { return at(move.target).open(move); }); !opened) return opened.error();
  say("switched: write-frozen for " + milliseconds(clock_.now() - began));
  return true;
}

Status ShardMover::end(const ShardMove& move) {
  for (const DatabaseId database_id : {move.source, move.target})
    if (database_id != 0)
      if (auto done = at(database_id).forget(move); !done) return about(database_id, done.error());
  return control().end(move);
}

Status ShardMover::complete(ShardMove& move) {
  if (auto done = retry_transient([&] { return at(move.target).open(move); }); !done) return done;
  if (auto done = control().set_writable(move); !done) return done;
  if (auto done = unlink(move); !done) return done;
  const auto counts = at(move.source).take_counts(move);
  if (!counts) return about(move.source, counts.error());
  if (auto done = at(move.target).add_counts(move, *counts); !done) return about(move.target, done.error());
  if (auto done = at(move.source).empty_counts(move); !done) return about(move.source, done.error());
  // A node with the old map would look for the shard's jobs here.
  if (auto done = wait_for_nodes(); !done) return done;
  if (auto done = clear(move, move.source); !done) return done;
  if (auto done = retry_transient([&] { return at(move.source).thaw(move); }); !done) return done;
  if (auto done = end(move); !done) return done;
  say(shard_text(move) + " lives in " + name(move.target));
  return Unit{};
}

Status ShardMover::abort(Shard shard) {
  if (auto done = begin(shard); !done) return done;
  return retry_transient(
      [&]() -> Status {
        auto taken = take(shard, {});
        if (!taken) return taken.error();
        if (!*taken) {
          say("shard " + std::to_string(shard) + " is not moving");
          return Unit{};
        }
        ShardMove move = **taken;
        return roll_back(move);
      },
      /*is_whole=*/true);
}

Status ShardMover::roll_back(ShardMove& move) {
  if (move.state == State::switched)
    return Error{ErrorCode::invalid,
                 shard_text(move) +
                     " has moved already: finish the move with the same command without --abort, "
                     "then move it back",
                 "shard"};
  if (auto done = note(move); !done) return done;
  if (move.state != State::aborting)
    if (auto done = control().set_state(move, State::aborting); !done) return done;
  say("rolling back");
  if (auto done = resume_at_source(move); !done) return done;
  if (auto done = delete_copy(move); !done) return done;
  if (auto done = end(move); !done) return done;
  say(shard_text(move) + " stays in " + name(move.source));
  return Unit{};
}

Status ShardMover::rebalance(const std::vector<DatabaseId>& database_ids) {
  const auto pending = under_way();
  if (!pending) return pending.error();
  for (const ShardMove& each : *pending) {
    if (each.state == State::aborting) {
      if (auto done = abort(each.shard); !done) return done;
    } else if (auto done = resume(each); !done) {
      return done;
    }
  }
  std::map<DatabaseId, std::vector<Shard>> shards;
  for (const auto& [database_id, session] : sessions_) shards[database_id];
  for (std::size_t shard = 0; shard < database_ids.size(); ++shard) {
    DatabaseId database_id = database_ids[shard];
    for (const ShardMove& each : *pending)
      if (each.shard == static_cast<Shard>(shard) && each.state != State::aborting) database_id = each.target;
    shards[database_id].push_back(static_cast<Shard>(shard));
  }
  while (true) {
    const auto size = [](const auto& entry) { return entry.second.size(); };
    const auto [least, most] = std::ranges::minmax_element(shards, {}, size);
    if (most->second.size() - least->second.size() < 2) break;
    const Shard shard = most->second.back();
    if (auto done = move(shard, least->first); !done) return done;
    most->second.pop_back();
    least->second.push_back(shard);
  }
  for (const auto& [database_id, list] : shards)
    say(name(database_id) + " has " + std::to_string(list.size()) + " shards");
  return Unit{};
}

}  // namespace tocsin

#include "node/shard_mover.h"

#include <algorithm>
#include <thread>

#include "postgres/pg_type_store.h"

namespace tocsin {
namespace {

using State = ShardMove::State;
using Timer = std::chrono::steady_clock;

constexpr auto kLook = std::chrono::milliseconds(200);
constexpr auto kCloseLook = std::chrono::milliseconds(5);
constexpr std::int64_t kClose = 1 << 20;  // bytes of log that a target applies in a moment
constexpr int kSwitchTries = 100;
// Nodes hear of the new map at once; one whose notification was lost reads it with its next heartbeat.
constexpr auto kMapSpreads = std::chrono::seconds(3);

SessionConfig session_of(const OpenDatabase& database) {
  SessionConfig session;
  session.url = database.url;
  session.application = "tocsin move";
  session.has_pinned_plans = false;
  session.statement_timeout_ms = 0;  // a copy begins when the last open transaction has ended
  return session;
}

std::string shard_text(const ShardMove& move) { return "shard " + std::to_string(move.shard); }

std::string milliseconds(Timer::duration length) {
  return std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(length).count()) + " ms";
}

Error about(const std::string& database, const Error& error) {
  return {error.code, "database " + database + ": " + error.message, error.field};
}

}  // namespace

ShardMover::End::End(const OpenDatabase& of) : database(of), session(session_of(of)), store(session) {}

ShardMover::ShardMover(const std::vector<OpenDatabase>& databases, MoveOptions options, OnStep on_step)
    : options_(std::move(options)), on_step_(std::move(on_step)) {
  for (const OpenDatabase& each : databases) ends_.try_emplace(each.place, each);
}

Status ShardMover::patiently(const std::function<Status()>& step) {
  std::string said;
  for (const auto began = Timer::now();;) {
    Status done = step();
    if (done || done.error().code == ErrorCode::invalid || Timer::now() - began > std::chrono::minutes(1)) return done;
    if (said != done.error().message) on_step_("trying again: " + done.error().message);
    said = done.error().message;
    std::this_thread::sleep_for(std::chrono::seconds(1));
  }
}

Status ShardMover::move(Shard shard, Place target) {
  return patiently([&] { return continue_move(shard, target); });
}

Status ShardMover::continue_move(Shard shard, Place target) {
  auto taken = home().take(shard, target);
  if (!taken) return taken.error();
  if (!*taken) {
    on_step_("shard " + std::to_string(shard) + " lives in " + name(target));
    return Unit{};
  }
  ShardMove move = **taken;
  if (move.state == State::aborting)
    return Error{ErrorCode::invalid, shard_text(move) + " is being rolled back: end that first, with --abort", "shard"};
  if (auto done = note(move); !done) return done;
  if (move.state == State::copying) {
    // A pause that nobody ended.
    if (auto done = at(move.source).unfreeze(move); !done) return about(name(move.source), done.error());
    on_step_(shard_text(move) + ": from " + name(move.source) + " to " + name(move.target));
    if (auto done = copy(move); !done) return done;
  }
  if (move.state != State::switched)
    if (auto done = switch_over(move); !done) return done;
  return complete(move);
}

Status ShardMover::note(const ShardMove& move) {
  for (const Place place : {move.source, move.target}) {
    if (place == 0) continue;  // its row is home's
    if (auto done = at(place).note(move); !done) return about(name(place), done.error());
  }
  return Unit{};
}

// Nodes do the same, where there are any.
Status ShardMover::mirror_types(const ShardMove& move) {
  if (move.target == 0) return Unit{};
  const auto types = PgTypeStore(ends_.at(0).session).list(TypeStore::Removed::included);
  if (!types) return types.error();
  return PgTypeStore(ends_.at(move.target).session).mirror(*types);
}

Status ShardMover::copy(const ShardMove& move) {
  if (auto done = mirror_types(move); !done) return done;
  if (auto done = at(move.source).publish(move); !done) return about(name(move.source), done.error());
  const auto tables = at(move.source).tables(move.shard);
  if (!tables) return tables.error();
  if (auto done = at(move.target).make_history(*tables); !done) return about(name(move.target), done.error());
  const std::string source = options_.source_url.empty() ? ends_.at(move.source).database.url : options_.source_url;
  if (auto done = at(move.target).subscribe(move, source); !done) return about(name(move.target), done.error());
  for (int last = -1;;) {
    const auto copied = at(move.target).copied(move);
    if (!copied) return copied.error();
    if (copied->first != last)
      on_step_("copied " + std::to_string(copied->first) + " of " + std::to_string(copied->second) + " tables");
    last = copied->first;
    if (copied->first == copied->second) return wait_until_close(move);
    std::this_thread::sleep_for(kLook);
  }
}

Status ShardMover::wait_until_close(const ShardMove& move) {
  for (std::int64_t last = -1;;) {
    const auto position = at(move.source).position();
    if (!position) return position.error();
    const auto behind = at(move.source).behind(move, *position);
    if (!behind) return about(name(move.source), behind.error());
    if (*behind < kClose) return Unit{};
    if (last < 0 || *behind > last * 2 || *behind < last / 2) {
      on_step_("the target is " + std::to_string(*behind >> 20) + " MiB of log behind");
      last = *behind;
    }
    std::this_thread::sleep_for(kLook);
  }
}

Status ShardMover::switch_over(ShardMove& move) {
  for (int tries = 0; tries < kSwitchTries; ++tries) {
    const auto done = try_switch(move);
    if (!done) return done.error();
    if (*done) return Unit{};
    std::this_thread::sleep_for(std::chrono::seconds(1));
    if (auto close = wait_until_close(move); !close) return close;
  }
  return Error{ErrorCode::invalid,
               "the target did not catch up within " + milliseconds(options_.longest_pause) + " of pause; " +
                   shard_text(move) + " is where it was, the copying goes on: run this again at a quieter time",
               "shard"};
}

// False: it did not work out, and the shard goes on where it was.
Result<bool> ShardMover::try_switch(ShardMove& move) {
  if (move.state == State::copying)
    if (auto done = home().set_state(move, State::switching); !done) return done.error();
  Status done = at(move.source).freeze(move);
  const auto began = Timer::now();
  bool is_close = false;
  if (done) {
    const auto position = at(move.source).position();
    if (!position) return position.error();
    while (!is_close && Timer::now() - began < options_.longest_pause) {
      const auto behind = at(move.source).behind(move, *position);
      if (!behind) return about(name(move.source), behind.error());
      is_close = *behind == 0;
      if (!is_close) std::this_thread::sleep_for(kCloseLook);
    }
  } else if (done.error().code != ErrorCode::conflict) {
    return about(name(move.source), done.error());
  }
  if (!is_close) {
    on_step_(done ? "the target did not catch up in time: the shard goes on in " + name(move.source)
                  : "an open transaction stands in the way: " + done.error().message);
    // First the state: nobody may flip what is about to move again.
    if (auto back = home().set_state(move, State::copying); !back) return back.error();
    if (auto back = patiently([&] { return at(move.source).unfreeze(move); }); !back) return back.error();
    return false;
  }
  if (auto flipped = home().flip(move); !flipped) return flipped.error();
  if (auto opened = patiently([&] { return at(move.target).open(move); }); !opened) return opened.error();
  on_step_("switched: it stood still for " + milliseconds(Timer::now() - began));
  return true;
}

// Replication ends before anything is deleted, or the deletions would be replicated.
Status ShardMover::unlink(const ShardMove& move) {
  if (auto done = at(move.target).unsubscribe(move); !done) return about(name(move.target), done.error());
  if (auto done = at(move.source).unpublish(move); !done) return about(name(move.source), done.error());
  return Unit{};
}

Status ShardMover::clear(const ShardMove& move, Place place) {
  const auto tables = at(place).tables(move.shard);
  if (!tables) return tables.error();
  std::int64_t n = 0;
  for (const std::string& table : *tables) {
    const auto deleted = at(place).delete_rows(move, table);
    if (!deleted) return about(name(place), deleted.error());
    n += *deleted;
  }
  on_step_("deleted " + std::to_string(n) + " rows from " + name(place));
  return Unit{};
}

Status ShardMover::end(const ShardMove& move) {
  for (const Place place : {move.source, move.target})
    if (place != 0)
      if (auto done = at(place).forget(move); !done) return about(name(place), done.error());
  return home().end(move);
}

Status ShardMover::complete(ShardMove& move) {
  if (auto done = patiently([&] { return at(move.target).open(move); }); !done) return done;
  if (auto done = unlink(move); !done) return done;
  const auto counts = at(move.source).take_counts(move);
  if (!counts) return about(name(move.source), counts.error());
  if (auto done = at(move.target).add_counts(move, *counts); !done) return about(name(move.target), done.error());
  std::this_thread::sleep_for(kMapSpreads);
  if (auto done = clear(move, move.source); !done) return done;
  if (auto done = patiently([&] { return at(move.source).thaw(move); }); !done) return done;
  if (auto done = end(move); !done) return done;
  on_step_(shard_text(move) + " lives in " + name(move.target));
  return Unit{};
}

Status ShardMover::abort(Shard shard) {
  return patiently([&]() -> Status {
    auto taken = home().take(shard, {});
    if (!taken) return taken.error();
    if (!*taken) {
      on_step_("shard " + std::to_string(shard) + " is not on its way");
      return Unit{};
    }
    ShardMove move = **taken;
    return roll_back(move);
  });
}

Status ShardMover::roll_back(ShardMove& move) {
  if (move.state == State::switched)
    return Error{ErrorCode::invalid,
                 shard_text(move) +
                     " has moved already: let the move end with the same command without --abort, "
                     "then move it back",
                 "shard"};
  if (auto done = note(move); !done) return done;
  if (move.state != State::aborting)
    if (auto done = home().set_state(move, State::aborting); !done) return done;
  if (auto done = patiently([&] { return at(move.source).unfreeze(move); }); !done) return done;
  if (auto done = unlink(move); !done) return done;
  if (auto done = clear(move, move.target); !done) return done;
  if (auto done = end(move); !done) return done;
  on_step_(shard_text(move) + " stays in " + name(move.source));
  return Unit{};
}

Status ShardMover::rebalance(const std::vector<Place>& places) {
  const auto pending = under_way();
  if (!pending) return pending.error();
  for (const ShardMove& each : *pending) {
    if (each.state == State::aborting) {
      if (auto done = abort(each.shard); !done) return done;
    } else if (auto done = resume(each); !done) {
      return done;
    }
  }
  std::map<Place, std::vector<Shard>> shards;
  for (const auto& [place, end] : ends_) shards[place];
  for (std::size_t shard = 0; shard < places.size(); ++shard) {
    Place place = places[shard];
    for (const ShardMove& each : *pending)
      if (each.shard == static_cast<Shard>(shard) && each.state != State::aborting) place = each.target;
    shards[place].push_back(static_cast<Shard>(shard));
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
  for (const auto& [place, list] : shards) on_step_(name(place) + " has " + std::to_string(list.size()) + " shards");
  return Unit{};
}

}  // namespace tocsin

#include "multidb/move_watch.h"

#include <spdlog/spdlog.h>

namespace tocsin {
namespace {

constexpr Duration kLook = std::chrono::seconds(1);

SessionConfig watch_session(const OpenDatabase& database) {
  SessionConfig session = session_of(database, "tocsin moves");
  session.has_pinned_plans = false;  // tiny tables
  return session;
}

}  // namespace

MoveWatch::MoveWatch(const std::vector<OpenDatabase>& databases, const Clock& clock, EventSink& events)
    : clock_(clock), events_(events) {
  for (const OpenDatabase& each : databases) sessions_.try_emplace(each.place, watch_session(each));
}

MonoTime MoveWatch::step(MonoTime now) {
  auto moves = PgMoveStore(sessions_.at(0)).list();
  if (!moves) {
    events_.failed(name(), moves.error());
    return now + kLook;
  }
  for (const ShardMove& each : *moves) {
    if (!each.is_overdue) continue;
    if (auto done = end_pause(each); !done) events_.failed(name(), done.error());
  }
  under_way_.set(std::make_shared<const std::vector<ShardMove>>(std::move(*moves)));
  return clock_.now() + kLook;
}

Status MoveWatch::end_pause(ShardMove move) {
  const auto where = [&move] { return move.state == ShardMove::State::switched ? move.target : move.source; };
  const DatabaseId place = where();
  const auto there = sessions_.find(place);
  if (there == sessions_.end()) return Unit{};  // another node has that database
  PgMoveStore control(sessions_.at(0));
  const auto is_mine = control.take_over(move);
  if (!is_mine) return is_mine.error();
  if (!*is_mine || where() != place) return Unit{};  // in a moment
  PgMoveStore store(there->second);
  if (place != 0)
    if (auto done = store.note_successor(move); !done) return done;
  auto done = move.state == ShardMove::State::switched ? store.open(move) : store.unfreeze(move);
  if (done) done = control.goes_on(move);
  if (done)
    spdlog::warn("shard {}: the command that moves it does not answer; the shard is writable again", move.shard);
  return done;
}

}  // namespace tocsin

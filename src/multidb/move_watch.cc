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
  for (const OpenDatabase& each : databases) {
    Session& session = sessions_.try_emplace(each.database_id, watch_session(each)).first->second;
    stores_.try_emplace(each.database_id, session);
  }
}

MonoTime MoveWatch::step(MonoTime now) {
  auto moves = stores_.at(0).list();
  if (!moves) {
    events_.failed(name(), moves.error());
    return now + kLook;
  }
  for (const ShardMove& each : *moves) {
    if (!each.is_overdue) continue;
    const auto is_writable = end_freeze(each, [this](DatabaseId database_id) -> MoveStore* {
      const auto store = stores_.find(database_id);
      return store == stores_.end() ? nullptr : &store->second;
    });
    if (!is_writable)
      events_.failed(name(), is_writable.error());
    else if (*is_writable)
      spdlog::warn("shard {}: the command that moves it has stopped; the shard is writable again", each.shard);
  }
  under_way_.set(std::make_shared<const std::vector<ShardMove>>(std::move(*moves)));
  return clock_.now() + kLook;
}

Result<bool> end_freeze(ShardMove move, const std::function<MoveStore*(DatabaseId)>& store_at) {
  const auto where = [&move] { return move.state == ShardMove::State::switched ? move.target : move.source; };
  const DatabaseId database_id = where();
  MoveStore* const store = store_at(database_id);
  if (!store) return false;  // another node has that database
  MoveStore& control = *store_at(0);
  const auto is_mine = control.take_over(move);
  if (!is_mine) return is_mine.error();
  if (!*is_mine || where() != database_id) return false;  // the next step tries again
  if (database_id != 0)
    if (auto done = store->note_successor(move); !done) return done.error();
  auto done = move.state == ShardMove::State::switched ? store->open(move) : store->unfreeze(move);
  if (done) done = control.set_writable(move);
  if (!done) return done.error();
  return true;
}

}  // namespace tocsin

#include "cluster/heartbeat.h"

#include <algorithm>
#include <utility>

namespace tocsin {

void Heartbeat::request() {
  is_requested_ = true;
  if (self_) self_->wake();
}

void Heartbeat::note_applied() {
  if (self_) self_->wake();
}

void Heartbeat::drain() {
  is_draining_ = true;
  request();
}

MonoTime Heartbeat::step(MonoTime now) {
  extend_lease();
  if (now < next_ && !is_requested_) return next_;
  is_requested_ = false;
  const auto known = view_.get();
  const auto applied = hooks_.applied();
  const bool is_draining = is_draining_;
  // Notifies the other nodes once when this node joins and once when it begins to leave.
  auto reply = store_.beat({config_.id, config_.name, config_.version, is_draining, hooks_.scanned(now),
                            known && !is_map_doubted_ ? known->map.version : -1, applied ? applied->map.version : -1,
                            !known || (is_draining && !is_drain_reported_)});
  if (!reply) {
    events_.failed(name(), reply.error());
    has_failed_since_view_ = true;
    // After the first failure at once: the connection may just have been lost.
    return next_ = std::exchange(was_answered_, false) ? now : now + config_.retry_pause;
  }
  was_answered_ = true;
  next_ = reply->answered + config_.interval();  // take() may want it earlier
  is_drain_reported_ = is_draining;
  // A standby that took over and lacks the last commits may give a version to another map again.
  is_map_doubted_ = std::exchange(connection_, reply->connection) != reply->connection && !reply->map;
  // No stage may act on the map before it is read again.
  if (is_map_doubted_) return next_ = reply->answered;
  const MonoTime asked = reply->asked;
  const MonoTime answered = reply->answered;
  const auto view = std::make_shared<const ClusterView>(take(*std::move(reply)));
  view_.set(view);
  lease_end_ = asked + config_.trust();
  if (known)
    extend_lease();
  else  // a node without shards
    hooks_.lease_valid_until(*std::exchange(lease_end_, {}));
  const bool is_sole_member =
      1 == std::ranges::count_if(view->members, [this](const SeenMember& member) { return !is_dead(member, config_); });
  hooks_.sole_member(is_sole_member);
  // No member waits for the next beat, and a new one announces itself. With several databases a beat also reports which
  // of them are reached, so it stays frequent.
  if (is_sole_member && !is_draining && view->map.is_all_in_control())
    next_ = answered + config_.sole_member_interval();
  if (shard_owner_) shard_owner_->wake();
  return next_;
}

void Heartbeat::extend_lease() {
  if (!lease_end_) return;
  const auto applied = hooks_.applied();
  if (applied && keeps_all(applied->map, view_.get()->map)) hooks_.lease_valid_until(*std::exchange(lease_end_, {}));
}

bool Heartbeat::keeps_all(const ShardMap& before, const ShardMap& after) const {
  for (std::size_t i = 0; i < before.owners.size(); ++i) {
    const auto shard = static_cast<Shard>(i);
    if (before.owners[i] != config_.id) continue;
    if (i >= after.owners.size() || after.owners[i] != config_.id) return false;
    if (after.database_of(shard) != before.database_of(shard)) return false;
  }
  return true;
}

ClusterView Heartbeat::take(BeatReply reply) {
  const auto known = view_.get();
  // After a time without answers the silence of members is counted from now on, so that an outage of the database
  // declares no member dead.
  const Duration unheard = known ? reply.answered - known->answered : Duration::max();
  if (std::exchange(has_failed_since_view_, false) || unheard >= config_.long_silence()) seen_.clear();
  ClusterView view;
  view.answered = reply.answered;
  view.map = reply.map ? *std::move(reply.map) : known ? known->map : ShardMap{};
  std::vector<DatabaseId> database_ids = view.map.database_ids;
  std::ranges::sort(database_ids);
  database_ids.erase(std::unique(database_ids.begin(), database_ids.end()), database_ids.end());
  std::map<NodeId, Seen> seen;
  for (Member& member : reply.members) {
    Seen& now = seen[member.id];
    const auto before = seen_.find(member.id);
    now = before == seen_.end() ? Seen{member.heartbeat_at, reply.answered, reply.answered, member.id == config_.id, {}}
                                : before->second;
    if (now.heartbeat_at != member.heartbeat_at) {
      // A member that returns after a long silence counts as new.
      if (reply.answered - now.changed >= config_.long_silence()) now.steady_since = reply.answered;
      now.heartbeat_at = member.heartbeat_at;
      // The heartbeat was written since this node's last one; that bounds the error of the database's clock.
      now.changed = reply.answered - std::min(member.heartbeat_age, unheard);
      now.is_heard = true;
    }
    // The next heartbeat comes as soon as this member would count as dead.
    const MonoTime dead_at = now.changed + config_.patience_with(member.is_connected, now.is_heard);
    if (dead_at > reply.answered) next_ = std::min(next_, dead_at);
    auto troubles = troubles_of(member, database_ids, reply.answered, now.reach);
    view.members.push_back({std::move(member), reply.answered - now.changed, reply.answered - now.steady_since,
                            now.is_heard, std::move(troubles)});
  }
  seen_ = std::move(seen);
  return view;
}

// The databases that a member does not reach, by the scans that it reported. A member that is heard reaches the control
// database.
std::map<DatabaseId, Reach> Heartbeat::troubles_of(const Member& member, const std::vector<DatabaseId>& database_ids,
                                                   MonoTime now, std::map<DatabaseId, SeenReach>& seen) const {
  std::map<DatabaseId, Reach> troubles;
  if (member.scanned.empty()) return troubles;  // an older version does not report it
  for (const DatabaseId database_id : database_ids) {
    if (database_id == 0) continue;
    const auto told = std::ranges::find(member.scanned, database_id, &ScannedDatabase::database_id);
    const auto age = told == member.scanned.end() ? std::nullopt : told->age;
    const bool is_reached = age && *age < config_.reached_lately();
    const auto [known, is_new] = seen.try_emplace(database_id, SeenReach{is_reached, false, now});
    SeenReach& reach = known->second;
    if (reach.is_reached != is_reached) reach = {is_reached, reach.was_lost, now};
    // Without the member's own silence. A database that it never scanned may be new to it.
    const Duration unscanned = age ? *age - member.heartbeat_age : now - reach.since;
    if (!is_reached && unscanned >= config_.out_of_reach()) {
      reach.was_lost = true;
      troubles[database_id] = Reach::out_of_reach;
    } else if (!is_reached || now - reach.since < (reach.was_lost ? config_.steady_again() : config_.steady())) {
      troubles[database_id] = Reach::unsteady;
    }
  }
  return troubles;
}

}  // namespace tocsin

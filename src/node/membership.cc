#include "node/membership.h"

#include <spdlog/spdlog.h>

#include <algorithm>

namespace tocsin {
namespace {

SessionConfig membership_session(const OpenDatabase& control) {
  SessionConfig session = session_of(control, "tocsin membership");
  session.has_pinned_plans = false;  // tiny tables
  // Nodes stay members, and shards of dead ones move, while a standby is down. A promotion may lose a shard map: the
  // nodes read the map again with each new connection.
  session.waits_for_standby = false;
  return session;
}

// While a proposal of a map hangs, no newer map is applied here, and the lease is not extended.
SessionConfig owner_session(const OpenDatabase& control) {
  SessionConfig session = membership_session(control);
  session.statement_timeout_ms = 1'000;
  session.lock_timeout_ms = 500;
  return session;
}

}  // namespace

Membership::Membership(const ClusterConfig& config, const std::vector<OpenDatabase>& databases, const Clock& clock,
                       EventSink& events, Hooks hooks)
    : config_(config),
      clock_(clock),
      events_(events),
      heartbeat_session_(membership_session(databases.front())),
      owner_session_(owner_session(databases.front())),
      heartbeat_store_(heartbeat_session_, clock),
      owner_store_(owner_session_, clock),
      heartbeat_(config, heartbeat_store_, view_, events,
                 {std::move(hooks.scanned),
                  [this, valid_until = std::move(hooks.lease_valid_until)](MonoTime end) {
                    lease_end_ = end;
                    valid_until(end);
                  },
                  [this] { return owner_.applied(); },
                  [this, sole_member = std::move(hooks.sole_member)](bool is_sole_member) {
                    sole_member(is_sole_member);
                    note_view();
                  }}),
      owner_(config, owner_store_, view_, events,
             {[this, owned = std::move(hooks.owned)](const std::vector<Shard>& mine, const ShardMap& map) {
                owned(mine, map);
                note_owned(!mine.empty());
              },
              [this] { heartbeat_.note_applied(); }, [this] { heartbeat_.request(); }}),
      heartbeat_loop_(heartbeat_, clock,
                      [this, on_step = hooks.on_step](const char* stage, Duration took) {
                        on_step(stage, took);
                        log_lease();
                      }),
      owner_loop_(owner_, clock, hooks.on_step) {
  heartbeat_.set_wakers(&heartbeat_loop_, &owner_loop_);
  if (databases.size() < 2) return;
  moves_.emplace(databases, clock, events);
  moves_loop_.emplace(*moves_, clock, hooks.on_step);
}

void Membership::start() {
  heartbeat_loop_.start();
  owner_loop_.start();
  if (moves_loop_) moves_loop_->start();
}

std::vector<ShardMove> Membership::moves() const { return moves_ ? *moves_->under_way() : std::vector<ShardMove>(); }

void Membership::log_lease() {
  const bool is_lost = lease_end_ != MonoTime() && clock_.now() >= lease_end_;
  if (std::exchange(is_lease_lost_, is_lost) == is_lost) return;
  if (is_lost)
    spdlog::error("the membership lease has ended: the control database has answered no heartbeat in time");
  else
    spdlog::info("the membership lease is extended again");
}

void Membership::note_owned(bool owns_any) {
  MutexLock lock(mutex_);
  owns_any_shard_ = owns_any;
  replaced_.notify_all();
}

// Wakes wait_until_replaced(): the last other member may have left, or drain, too.
void Membership::note_view() {
  { MutexLock lock(mutex_); }  // wait_until_replaced() has not checked yet, or waits: it misses no notification
  replaced_.notify_all();
}

void Membership::drain() {
  {
    MutexLock lock(mutex_);
    owned_any_at_drain_ = owns_any_shard_;
  }
  heartbeat_.drain();
}

bool Membership::has_successor() const {
  const auto view = view_.get();
  return view && std::ranges::any_of(view->members, [this](const SeenMember& seen) {
           return seen.member.id != config_.id && !seen.member.is_draining && !is_dead(seen, config_);
         });
}

bool Membership::wait_until_replaced(Duration most) {
  // The other nodes have to read the new map, too, and to scan.
  constexpr auto kBeginToScan = std::chrono::milliseconds(200);
  const auto end = std::chrono::steady_clock::now() + most;
  MutexLock lock(mutex_);
  while (owns_any_shard_ && has_successor())
    if (!replaced_.wait_until(mutex_, end)) return false;
  const auto scanned = std::chrono::steady_clock::now() + kBeginToScan;
  while (owned_any_at_drain_ && !owns_any_shard_ && replaced_.wait_until(mutex_, scanned)) {
  }
  return true;
}

void Membership::stop() {
  if (std::exchange(is_stopped_, true)) return;
  heartbeat_loop_.stop();
  owner_loop_.stop();
  if (moves_loop_) moves_loop_->stop();
  if (!view()) return;  // it never became a member
  if (auto done = owner_store_.leave(config_.id); !done) events_.failed("leave", done.error());
}

}  // namespace tocsin

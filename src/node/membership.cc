#include "node/membership.h"

namespace tocsin {
namespace {

SessionConfig membership_session(const OpenDatabase& control) {
  SessionConfig session = session_of(control, "tocsin membership");
  session.has_pinned_plans = false;  // tiny tables
  return session;
}

}  // namespace

Membership::Membership(const ClusterConfig& config, const std::vector<OpenDatabase>& databases, const Clock& clock,
                       EventSink& events, Hooks hooks)
    : config_(config),
      events_(events),
      heartbeat_session_(membership_session(databases.front())),
      owner_session_(membership_session(databases.front())),
      heartbeat_store_(heartbeat_session_, clock),
      owner_store_(owner_session_, clock),
      heartbeat_(config, heartbeat_store_, view_, events,
                 {std::move(hooks.scanned), std::move(hooks.lease_valid_until), [this] { return owner_.used_map(); },
                  std::move(hooks.alone)}),
      owner_(config, owner_store_, view_, events, {std::move(hooks.owned), [this] { heartbeat_.request(); }}),
      heartbeat_loop_(heartbeat_, clock, hooks.on_step),
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

void Membership::stop() {
  if (std::exchange(is_stopped_, true)) return;
  heartbeat_loop_.stop();
  owner_loop_.stop();
  if (moves_loop_) moves_loop_->stop();
  if (!view()) return;  // never came that far
  if (auto done = owner_store_.leave(config_.id); !done) events_.failed("leave", done.error());
}

}  // namespace tocsin

#include "node/membership.h"

namespace tocsin {
namespace {

SessionConfig unpinned(SessionConfig config) {
  config.has_pinned_plans = false;  // tiny tables
  return config;
}

}  // namespace

Membership::Membership(const ClusterConfig& config, const SessionConfig& session, const Clock& clock, EventSink& events,
                       Hooks hooks)
    : config_(config),
      events_(events),
      heartbeat_session_(unpinned(session)),
      owner_session_(unpinned(session)),
      heartbeat_store_(heartbeat_session_, clock),
      owner_store_(owner_session_, clock),
      heartbeat_(config, heartbeat_store_, view_, events, std::move(hooks.heartbeat)),
      owner_(config, owner_store_, view_, events, {std::move(hooks.owned), [this] { heartbeat_.request(); }}),
      heartbeat_loop_(heartbeat_, clock, hooks.on_step),
      owner_loop_(owner_, clock, hooks.on_step) {
  heartbeat_.set_wakers(&heartbeat_loop_, &owner_loop_);
}

void Membership::stop() {
  if (std::exchange(is_stopped_, true)) return;
  heartbeat_loop_.stop();
  owner_loop_.stop();
  if (!view()) return;  // never came that far
  if (auto done = owner_store_.leave(config_.id); !done) events_.failed("leave", done.error());
}

}  // namespace tocsin

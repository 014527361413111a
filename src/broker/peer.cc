#include "broker/peer.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <map>

#include "base/mutex.h"

namespace tocsin {
namespace {

constexpr int kSilenceMs = 15'000;

Error unresolved(const std::string& why) { return {ErrorCode::unavailable, "resolving the name: " + why, {}}; }

void set(int socket, int level, int option, int value) { ::setsockopt(socket, level, option, &value, sizeof value); }

}  // namespace

struct PeerNames::State {
  struct Lookup {
    bool is_done = false;
    boost::system::error_code ec;
    Resolver::Addresses addresses;
  };

  Mutex mutex;
  CondVar changed;
  std::map<std::string, std::shared_ptr<Lookup>> under_way TOCSIN_GUARDED_BY(mutex);  // by name
};

PeerNames::PeerNames(std::shared_ptr<Resolver> resolver)
    : state_(std::make_shared<State>()), resolver_(std::move(resolver)) {}

const std::shared_ptr<PeerNames>& PeerNames::of_system() {
  static const auto names = std::make_shared<PeerNames>(std::make_shared<SystemResolver>());
  return names;
}

Result<Resolver::Addresses> PeerNames::find(const std::string& host, std::chrono::milliseconds timeout,
                                            const Flag& is_interrupted) {
  State& names = *state_;
  MutexLock lock(names.mutex);
  std::shared_ptr<State::Lookup>& current = names.under_way[host];
  const bool is_mine = !current;
  if (is_mine) current = std::make_shared<State::Lookup>();
  const std::shared_ptr<State::Lookup> lookup = current;
  if (is_mine) {
    lock.unlock();
    resolver_->resolve(host, [state = state_, lookup, host](const auto& ec, Resolver::Addresses addresses) {
      MutexLock locked(state->mutex);
      lookup->is_done = true;
      lookup->ec = ec;
      lookup->addresses = std::move(addresses);
      state->under_way.erase(host);
      state->changed.notify_all();
    });
    lock.lock();
  }
  const auto end = std::chrono::steady_clock::now() + timeout;
  while (!lookup->is_done && !is_interrupted && names.changed.wait_until(names.mutex, end)) {
  }
  if (is_interrupted) return unresolved("interrupted");
  if (!lookup->is_done) return unresolved("no answer in time");
  if (lookup->ec) return unresolved(lookup->ec.message());
  return lookup->addresses;
}

void PeerNames::interrupt(Flag& is_interrupted) {
  MutexLock lock(state_->mutex);
  is_interrupted = true;
  state_->changed.notify_all();
}

Status Dialer::dial(const BrokerPeer& peer, std::chrono::milliseconds timeout, const Connect& connect) {
  auto addresses = names_->find(peer.host, timeout, is_interrupted_);
  if (!addresses) return addresses.error();
  std::erase_if(*addresses, [&](const auto& address) { return peer.guard && !peer.guard->allows(address); });
  Status last = Error{ErrorCode::unavailable, std::string("refused: ") + kForbiddenPeer, {}};
  for (const auto& address : *addresses) {
    if (Status done = interruption(); !done) return done;
    if (last = connect(address.to_string(), timeout / static_cast<int>(addresses->size())); last) return last;
  }
  return last;
}

Status Dialer::interruption() const {
  return is_interrupted_ ? Status(Error{ErrorCode::unavailable, "interrupted", {}}) : Status(Unit{});
}

void give_up_when_silent(int socket) {
  set(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set(socket, IPPROTO_TCP, TCP_KEEPIDLE, 5);
  set(socket, IPPROTO_TCP, TCP_KEEPINTVL, 3);
  set(socket, IPPROTO_TCP, TCP_KEEPCNT, 3);
  set(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, kSilenceMs);  // also ends a write to a peer that takes nothing
}

}  // namespace tocsin

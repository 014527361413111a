// Where a broker is, whether a node may connect there, and how it does.
#pragma once

#include <sys/time.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "delivery/address_guard.h"
#include "delivery/resolver.h"
#include "tocsin/error.h"

namespace tocsin {

// Null: any address. Brokers of types have one, because the author of a type chooses the address; those of entries,
// which the operator has configured, have none.
using GuardPtr = std::shared_ptr<const AddressGuard>;

struct BrokerPeer {
  std::string host;  // a name or an address
  std::uint16_t port = 0;
  GuardPtr guard;
};

inline constexpr const char* kForbiddenPeer = "it is at no address that jobs may go to (see --allow-webhook)";

// The addresses of names, for threads that wait for them. One lookup per name at a time, however many wait for it or
// have given up: a resolver that hangs gets no more of them with every try. Thread: any.
class PeerNames {
 public:
  explicit PeerNames(std::shared_ptr<Resolver> resolver);
  static const std::shared_ptr<PeerNames>& of_system();

  using Flag = std::atomic<bool>;
  // Waits up to `timeout`, or until `is_interrupted` is set by interrupt(). Error unavailable: no address, and why.
  Result<Resolver::Addresses> find(const std::string& host, std::chrono::milliseconds timeout,
                                   const Flag& is_interrupted);
  void interrupt(Flag& is_interrupted);

 private:
  struct State;  // shared with lookups, which may outlive all who wait
  const std::shared_ptr<State> state_;
  const std::shared_ptr<Resolver> resolver_;
};

inline constexpr std::chrono::milliseconds kConnectTimeout{5000};

// As the libraries of brokers take times.
inline timeval timeval_of(std::chrono::milliseconds time) {
  return {time.count() / 1000, static_cast<suseconds_t>(time.count() % 1000 * 1000)};
}

// Connects to a peer once. Thread: owner only, except interrupt() (any).
class Dialer {
 public:
  explicit Dialer(std::shared_ptr<PeerNames> names = PeerNames::of_system()) : names_(std::move(names)) {}

  using Connect = std::function<Status(const std::string& address, std::chrono::milliseconds timeout)>;
  // Calls `connect` with each address of the peer that is allowed, spelt out, until one succeeds; each gets its part of
  // `timeout`, after the name has had as much at most. So what is connected to is what was judged, whatever the name
  // resolves to a moment later. Error unavailable: no address, none that is allowed, or why the last one failed.
  Status dial(const BrokerPeer& peer, std::chrono::milliseconds timeout, const Connect& connect);

  // Ends dial(), now or whenever it is called; a `connect` that is under way takes its time.
  void interrupt() { names_->interrupt(is_interrupted_); }
  // Error unavailable: it was interrupted.
  Status interruption() const;

 private:
  const std::shared_ptr<PeerNames> names_;
  PeerNames::Flag is_interrupted_{false};
};

// A peer that acknowledges no data for 15 s is given up, also one that takes nothing.
void give_up_when_silent(int socket);

}  // namespace tocsin

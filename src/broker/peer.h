// Dialer: connects to a broker. It resolves the name, checks the addresses, and tries one after the other.
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

// Resolves names for threads that wait. At most one look-up per name runs at a time, however many threads wait for it
// or have given up, so a hanging resolver is not called again. Thread: any.
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

// The form of time that the broker libraries take.
inline timeval timeval_of(std::chrono::milliseconds time) {
  return {time.count() / 1000, static_cast<suseconds_t>(time.count() % 1000 * 1000)};
}

// Connects to a broker once. Thread: owner only, except interrupt() (any).
class Dialer {
 public:
  explicit Dialer(std::shared_ptr<PeerNames> names = PeerNames::of_system()) : names_(std::move(names)) {}

  using Connect = std::function<Status(const std::string& address, std::chrono::milliseconds timeout)>;
  // Calls `connect` with each allowed address of the peer until one succeeds. The look-up gets `timeout` at most, then
  // the addresses share another `timeout`. The address that was checked is the one connected to, so a name that changes
  // gains nothing. Error unavailable: no address, none allowed, or why the last one failed.
  Status dial(const BrokerPeer& peer, std::chrono::milliseconds timeout, const Connect& connect);

  // Makes the current and every later dial() fail; a `connect` under way is not interrupted.
  void interrupt() { names_->interrupt(is_interrupted_); }
  // Error unavailable: it was interrupted.
  Status interruption() const;

 private:
  const std::shared_ptr<PeerNames> names_;
  PeerNames::Flag is_interrupted_{false};
};

// Sets TCP options that end the connection when the peer acknowledges no data for 15 s.
void give_up_when_silent(int socket);

}  // namespace tocsin

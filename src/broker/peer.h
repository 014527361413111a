// Dialer: connects to a broker: it resolves the name, checks the addresses, and tries one after the other. Each link
// and entry source whose library takes an address (AMQP, Redis) owns one. Kafka's library connects by itself.
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

// The addresses to which connections are allowed; null: all. The broker of a type has a guard, because the type's
// author chooses the address. The broker of an entry topic has none, because the operator configures it.
using GuardPtr = std::shared_ptr<const AddressGuard>;

struct BrokerPeer {
  std::string host;  // a name or an address
  std::uint16_t port = 0;
  GuardPtr guard;
};

// End of the error text for a broker that the guard refuses.
inline constexpr const char* kForbiddenPeer = "it is at no address that jobs may go to (see --allow-webhook)";

// Resolves names for threads that wait. At most one lookup per name runs at a time, even if several threads wait for it
// or have given up. So a lookup that hangs is not started again. Thread: any.
class PeerNames {
 public:
  explicit PeerNames(std::shared_ptr<Resolver> resolver);
  static const std::shared_ptr<PeerNames>& of_system();  // the process's object; asks the system's resolver

  using Flag = std::atomic<bool>;
  // The addresses of a name. Waits up to `timeout`, or until interrupt() sets `is_interrupted`. Error unavailable: the
  // name has no address, the time is over, or it was interrupted.
  Result<Resolver::Addresses> find(const std::string& host, std::chrono::milliseconds timeout,
                                   const Flag& is_interrupted);
  void interrupt(Flag& is_interrupted);  // sets the flag and wakes the find() calls that wait with it

 private:
  struct State;  // shared with lookups, which may outlive this object
  const std::shared_ptr<State> state_;
  const std::shared_ptr<Resolver> resolver_;
};

// The longest wait for each step: resolving the name, connecting, each answer.
inline constexpr std::chrono::milliseconds kConnectTimeout{5000};

// A time-out as hiredis and rabbitmq-c take it.
inline timeval timeval_of(std::chrono::milliseconds time) {
  return {time.count() / 1000, static_cast<suseconds_t>(time.count() % 1000 * 1000)};
}

// Thread: owner only (a publisher's or an entry consumer's), except interrupt() (any).
class Dialer {
 public:
  explicit Dialer(std::shared_ptr<PeerNames> names = PeerNames::of_system()) : names_(std::move(names)) {}

  using Connect = std::function<Status(const std::string& address, std::chrono::milliseconds timeout)>;
  // Calls `connect` with each allowed address of the peer until one call succeeds. The lookup takes `timeout` at most;
  // then the addresses share another `timeout` equally. The connection goes to the address that was checked, even if
  // DNS gives another one by then. Error unavailable: the name has no address, no address is allowed, it was
  // interrupted, or the last connect failed; the message says why.
  Status dial(const BrokerPeer& peer, std::chrono::milliseconds timeout, const Connect& connect);

  // Makes every later dial() fail, and the present one before its next `connect`. A `connect` under way continues. If
  // it succeeds, dial() succeeds, too: the caller must then ask interruption().
  void interrupt() { names_->interrupt(is_interrupted_); }
  // Error unavailable: interrupt() was called.
  Status interruption() const;

 private:
  const std::shared_ptr<PeerNames> names_;
  PeerNames::Flag is_interrupted_{false};
};

// Sets TCP options that end a connection whose peer acknowledges no data for 15 s.
void give_up_when_silent(int socket);

}  // namespace tocsin

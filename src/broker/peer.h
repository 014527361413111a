// Dialer: connects to a broker. It resolves the name, checks the addresses, and tries one after the other. Each link
// and entry source whose library takes an address (AMQP, Redis) has one; Kafka's library connects by itself.
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

// The addresses that may be connected to; null: any. A type's broker has a guard, because the author of the type
// chooses the address; a broker of an entry topic, which the operator has configured, has none.
using GuardPtr = std::shared_ptr<const AddressGuard>;

struct BrokerPeer {
  std::string host;  // a name or an address
  std::uint16_t port = 0;
  GuardPtr guard;
};

// End of the error text for a broker that the guard refuses.
inline constexpr const char* kForbiddenPeer = "it is at no address that jobs may go to (see --allow-webhook)";

// Resolves names for threads that wait. At most one look-up per name runs at a time, however many threads wait for it
// or have given up, so a look-up that hangs is not started again for that name. Thread: any.
class PeerNames {
 public:
  explicit PeerNames(std::shared_ptr<Resolver> resolver);
  static const std::shared_ptr<PeerNames>& of_system();  // that of the process: asks the system's resolver

  using Flag = std::atomic<bool>;
  // The addresses of a name. Waits up to `timeout`, or until interrupt() sets `is_interrupted`. Error unavailable: the
  // name has no address, time-out, or interrupted.
  Result<Resolver::Addresses> find(const std::string& host, std::chrono::milliseconds timeout,
                                   const Flag& is_interrupted);
  void interrupt(Flag& is_interrupted);  // sets the flag and wakes the find() calls that wait with it

 private:
  struct State;  // shared with lookups, which may outlive all who wait
  const std::shared_ptr<State> state_;
  const std::shared_ptr<Resolver> resolver_;
};

// The longest wait for each step of connecting: resolving the name, connecting, each answer.
inline constexpr std::chrono::milliseconds kConnectTimeout{5000};

// A time-out as hiredis and rabbitmq-c take it.
inline timeval timeval_of(std::chrono::milliseconds time) {
  return {time.count() / 1000, static_cast<suseconds_t>(time.count() % 1000 * 1000)};
}

// Thread: owner only, except interrupt() (any).
class Dialer {
 public:
  explicit Dialer(std::shared_ptr<PeerNames> names = PeerNames::of_system()) : names_(std::move(names)) {}

  using Connect = std::function<Status(const std::string& address, std::chrono::milliseconds timeout)>;
  // Calls `connect` with each allowed address of the peer until one succeeds. The look-up gets `timeout` at most, then
  // the addresses share another `timeout` equally. The address that was checked is the one connected to, even if DNS
  // answers something else by then. Error unavailable: no address, none allowed, interrupted, or why the last one
  // failed.
  Status dial(const BrokerPeer& peer, std::chrono::milliseconds timeout, const Connect& connect);

  // Makes every later dial() fail, and the current one before its next `connect`. A `connect` under way continues; if
  // it succeeds, so does its dial(): the caller asks interruption() then.
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

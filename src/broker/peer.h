// Where a broker is, and whether a node may connect there.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "delivery/address_guard.h"
#include "tocsin/error.h"

namespace tocsin {

// Null: any address. Brokers of types have one, for whoever writes a type chooses the address; those of entries, which
// the operator has configured, have none.
using GuardPtr = std::shared_ptr<const AddressGuard>;

struct BrokerPeer {
  std::string host;  // a name or an address
  std::uint16_t port = 0;
  GuardPtr guard;
};

inline constexpr const char* kForbiddenPeer = "it is at no address that jobs may go to (see --allow-webhook)";

// Calls `connect` with each address of the peer that is allowed, spelt out, until one succeeds; each gets its part of
// `timeout`. So what is connected to is what was judged, whatever the name resolves to a moment later. Error
// unavailable: no address, none that is allowed, or why the last one failed.
Status connect_to(const BrokerPeer& peer, std::chrono::milliseconds timeout,
                  const std::function<Status(const std::string& address, std::chrono::milliseconds timeout)>& connect);

}  // namespace tocsin

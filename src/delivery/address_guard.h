// AddressGuard: decides to which addresses the webhooks and brokers of types may connect. The author of a type chooses
// a URL, but has no right to the node's network: without a guard a webhook could read the cloud's metadata service, or
// post to a database's admin port. Node::Impl (node/node.cc) makes one at the node's start. HTTP senders and broker
// connections ask it after they have resolved a name, and connect only to addresses that it has checked.
#pragma once

#include <sys/socket.h>

#include <array>
#include <boost/asio/ip/address.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tocsin/error.h"

namespace tocsin {

// An address passes if it is a public unicast address, or lies in a range given to allowing(). Some IPv6 addresses
// contain an IPv4 address:
//  - mapped and NAT64: the IPv4 address decides;
//  - ISATAP: both must pass;
//  - 6to4 and Teredo, which reach any IPv4 address through a relay, are not public.
// Thread: any, because it never changes.
class AddressGuard {
 public:
  // Allows public addresses only.
  AddressGuard() = default;

  // Allows public addresses and these. `ranges`: texts such as `10.0.0.0/8`, `fd00::/8` or a single address.
  // `allow_loopback`: 127.0.0.0/8 and ::1. Error invalid, field `allow_webhook`: a text is not a range, or its address
  // has bits after the prefix.
  static Result<AddressGuard> allowing(const std::vector<std::string>& ranges, bool allow_loopback);

  bool allows(const boost::asio::ip::address& address) const;
  // False for addresses that are neither IPv4 nor IPv6.
  bool allows(const sockaddr& address) const;

  // Whether `host` (without brackets) is a forbidden address, in any spelling that the resolver accepts (2130706433,
  // 0177.0.0.1, ::ffff:a00:1). So such a type is refused when it is written. False for names: they are checked after
  // they are resolved. Looks up nothing.
  bool refuses_literal(const std::string& host) const;

  // An IPv6 address, or an IPv4 address in its mapped form (::ffff:a.b.c.d), so that one table serves both families.
  using Bytes = std::array<std::uint8_t, 16>;
  struct Range {
    Bytes first{};
    int bits = 0;  // length of the prefix, 0 to 128; for IPv4: 96 + the written length
    bool contains(const Bytes& address) const;
  };

 private:
  std::vector<Range> allowed_;
};

}  // namespace tocsin

// AddressGuard: decides which addresses the webhooks and brokers of types may connect to. The author of a type chooses
// a URL, but has no right to the node's network: without a guard a webhook could read the cloud's metadata service or
// post to a database's admin port. A node makes one guard at its start. HTTP senders and broker connections ask it
// after they have resolved a name, and connect to the addresses that it checked.
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

// An address passes if a range of allowing() holds it, or if it is a public unicast address. Of an IPv6 address with an
// IPv4 address inside, that one decides (mapped, NAT64) or must pass, too (ISATAP). 6to4 and Teredo addresses, which
// reach any IPv4 address through a relay, are not public. Thread: any, because it never changes.
class AddressGuard {
 public:
  // Allows public addresses only.
  AddressGuard() = default;

  // Allows more: `ranges`, each as `10.0.0.0/8`, `fd00::/8` or a single address, and with `allow_loopback` 127.0.0.0/8
  // and ::1. Error invalid, field `allow_webhook`: a text is not a range, or its address has bits behind the prefix.
  static Result<AddressGuard> allowing(const std::vector<std::string>& ranges, bool allow_loopback);

  bool allows(const boost::asio::ip::address& address) const;
  // False for addresses that are neither IPv4 nor IPv6.
  bool allows(const sockaddr& address) const;

  // Whether `host`, without brackets, is a forbidden address in any spelling that the resolver knows (2130706433,
  // 0177.0.0.1, ::ffff:a00:1), so that such a type is refused when it is written. False for names, which are checked
  // after they are resolved. Looks up nothing.
  bool refuses_literal(const std::string& host) const;

  // An IPv6 address, or an IPv4 address in its mapped form (::ffff:a.b.c.d), so that one table serves both families.
  using Bytes = std::array<std::uint8_t, 16>;
  struct Range {
    Bytes first{};
    int bits = 0;  // length of the prefix, 0 to 128; for IPv4 96 more than written
    bool contains(const Bytes& address) const;
  };

 private:
  std::vector<Range> allowed_;
};

}  // namespace tocsin

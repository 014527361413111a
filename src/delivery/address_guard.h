// Decides which addresses webhooks and brokers of types may connect to. The author of a type chooses a URL, but has no
// right to the node's network: without a guard a webhook could read the cloud's metadata service or post to a
// database's admin port. The resolved address that is connected to is checked, not the text of the URL.
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

// Public unicast addresses pass; others pass only when a range of allowing() holds them. An IPv4 address inside an IPv6
// one (mapped, NAT64, ISATAP) must pass, too; 6to4 and Teredo, which reach any IPv4 address through a relay, do not
// pass. Thread: const after construction.
class AddressGuard {
 public:
  // Allows public addresses only.
  AddressGuard() = default;

  // `ranges`: further allowed addresses, as `10.0.0.0/8`, `fd00::/8` or a single address. `allow_loopback`: 127.0.0.0/8
  // and ::1, too. Error invalid, field `allow_webhook`: one of the ranges is none.
  static Result<AddressGuard> allowing(const std::vector<std::string>& ranges, bool allow_loopback);

  bool allows(const boost::asio::ip::address& address) const;
  // False for addresses that are neither IPv4 nor IPv6.
  bool allows(const sockaddr& address) const;

  // Whether `host` is a forbidden address in any spelling that the resolver knows (2130706433, 0177.0.0.1,
  // [::ffff:a00:1]). False for names, which are checked when they are resolved.
  bool refuses_literal(const std::string& host) const;

  // IPv4 addresses in their mapped form, so that one table serves both families.
  using Bytes = std::array<std::uint8_t, 16>;
  struct Range {
    Bytes first{};
    int bits = 0;  // of `first` that matter
    bool contains(const Bytes& address) const;
  };

 private:
  std::vector<Range> allowed_;
};

}  // namespace tocsin

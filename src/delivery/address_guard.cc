#include "delivery/address_guard.h"

#include <netdb.h>

#include <algorithm>
#include <boost/asio/ip/network_v4.hpp>
#include <boost/asio/ip/network_v6.hpp>
#include <memory>

#include "base/assert.h"

namespace tocsin {
namespace {

namespace ip = boost::asio::ip;
using boost::system::error_code;
using Bytes = AddressGuard::Bytes;
using Range = AddressGuard::Range;

Bytes bytes_of(const ip::address& address) {
  if (address.is_v6()) return address.to_v6().to_bytes();
  return ip::make_address_v6(ip::v4_mapped, address.to_v4()).to_bytes();
}

std::optional<Range> range_of(std::string text) {
  error_code ec;
  if (text.find('/') == std::string::npos) {
    const auto address = ip::make_address(text, ec);
    if (ec) return {};
    return Range{bytes_of(address), 128};
  }
  if (text.find(':') == std::string::npos) {
    const auto network = ip::make_network_v4(text, ec);
    if (ec || network.canonical() != network) return {};
    return Range{bytes_of(network.address()), 96 + network.prefix_length()};
  }
  const auto network = ip::make_network_v6(text, ec);
  if (ec || network.canonical() != network) return {};
  return Range{bytes_of(network.address()), network.prefix_length()};
}

std::vector<Range> ranges_of(std::initializer_list<const char*> texts) {
  std::vector<Range> ranges;
  for (const char* text : texts) {
    const auto range = range_of(text);
    TOCSIN_ASSERT(range);
    ranges.push_back(*range);
  }
  return ranges;
}

bool holds(const std::vector<Range>& ranges, const Bytes& address) {
  return std::ranges::any_of(ranges, [&](const Range& range) { return range.contains(address); });
}

// Ranges of IANA's special-purpose registries that are not public.
bool is_special(const Bytes& address) {
  static const std::vector<Range> special = ranges_of({
      "0.0.0.0/8",        // this host: reaches loopback on Linux
      "10.0.0.0/8",       // private
      "100.64.0.0/10",    // carrier-grade NAT
      "127.0.0.0/8",      // loopback
      "169.254.0.0/16",   // link-local, and the metadata services of clouds
      "172.16.0.0/12",    // private
      "192.0.0.0/24",     // protocol assignments
      "192.0.2.0/24",     // documentation
      "192.88.99.0/24",   // 6to4 relays
      "192.168.0.0/16",   // private
      "198.18.0.0/15",    // benchmarking
      "198.51.100.0/24",  // documentation
      "203.0.113.0/24",   // documentation
      "224.0.0.0/4",      // multicast
      "240.0.0.0/4",      // reserved, and broadcast
      "2001::/23",        // protocol assignments: Teredo, ORCHID, benchmarking
      "2001:db8::/32",    // documentation
      "2002::/16",        // 6to4
      "3fff::/20",        // documentation
  });
  return holds(special, address);
}

Bytes mapped(const Bytes& address, std::size_t at) {
  Bytes inner{};
  inner[10] = inner[11] = 0xff;
  std::copy_n(address.begin() + static_cast<std::ptrdiff_t>(at), 4, inner.begin() + 12);
  return inner;
}

// The IPv4 address inside an IPv6 one (NAT64, ISATAP), which its packets reach in the end.
std::optional<Bytes> inner_address(const Bytes& address) {
  static const Range nat64 = *range_of("64:ff9b::/96");
  if (nat64.contains(address)) return mapped(address, 12);
  const bool is_isatap = (address[8] & 0xfc) == 0 && address[9] == 0 && address[10] == 0x5e && address[11] == 0xfe;
  if (is_isatap) return mapped(address, 12);
  return {};
}

bool passes(const std::vector<Range>& allowed, const Bytes& address) {
  static const std::vector<Range> unicast = ranges_of({"0.0.0.0/0", "2000::/3"});
  if (holds(allowed, address)) return true;
  static const Range nat64 = *range_of("64:ff9b::/96");
  const auto inner = inner_address(address);
  if (inner && !passes(allowed, *inner)) return false;
  return nat64.contains(address) || (holds(unicast, address) && !is_special(address));
}

}  // namespace

bool AddressGuard::Range::contains(const Bytes& address) const {
  const auto whole = static_cast<std::size_t>(bits / 8);
  if (!std::equal(first.begin(), first.begin() + static_cast<std::ptrdiff_t>(whole), address.begin())) return false;
  const int rest = bits % 8;
  return rest == 0 || (first[whole] ^ address[whole]) >> (8 - rest) == 0;
}

Result<AddressGuard> AddressGuard::allowing(const std::vector<std::string>& ranges, bool allow_loopback) {
  AddressGuard guard;
  for (const std::string& text : ranges) {
    const auto range = range_of(text);
    if (!range) {
      return Error{ErrorCode::invalid, "'" + text + "' is no range of addresses such as 10.0.0.0/8 or fd00::/8",
                   "allow_webhook"};
    }
    guard.allowed_.push_back(*range);
  }
  if (allow_loopback) {
    for (const Range& range : ranges_of({"127.0.0.0/8", "::1"})) guard.allowed_.push_back(range);
  }
  return guard;
}

bool AddressGuard::allows(const ip::address& address) const { return passes(allowed_, bytes_of(address)); }

bool AddressGuard::allows(const sockaddr& address) const {
  if (address.sa_family == AF_INET)
    return allows(ip::address_v4(ntohl(reinterpret_cast<const sockaddr_in&>(address).sin_addr.s_addr)));
  if (address.sa_family != AF_INET6) return false;
  Bytes bytes;
  std::copy_n(reinterpret_cast<const sockaddr_in6&>(address).sin6_addr.s6_addr, bytes.size(), bytes.begin());
  return allows(ip::address_v6(bytes));
}

bool AddressGuard::refuses_literal(const std::string& host) const {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST;  // no look-up
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), nullptr, &hints, &found) != 0) return false;
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, freeaddrinfo);
  return !allows(*found->ai_addr);
}

}  // namespace tocsin

#include "broker/peer.h"

#include <netdb.h>

#include <vector>

namespace tocsin {
namespace {

struct Free {
  void operator()(addrinfo* found) const { freeaddrinfo(found); }
};

std::string spelt_out(const addrinfo& found) {
  char text[NI_MAXHOST] = "";
  getnameinfo(found.ai_addr, found.ai_addrlen, text, sizeof text, nullptr, 0, NI_NUMERICHOST);
  return text;
}

}  // namespace

Status connect_to(const BrokerPeer& peer, std::chrono::milliseconds timeout,
                  const std::function<Status(const std::string& address, std::chrono::milliseconds timeout)>& connect) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* first = nullptr;
  if (const int failed = getaddrinfo(peer.host.c_str(), nullptr, &hints, &first); failed != 0)
    return Error{ErrorCode::unavailable, std::string("resolving the name: ") + gai_strerror(failed), {}};
  const std::unique_ptr<addrinfo, Free> owner(first);
  std::vector<std::string> addresses;
  for (const addrinfo* each = first; each; each = each->ai_next)
    if (!peer.guard || peer.guard->allows(*each->ai_addr)) addresses.push_back(spelt_out(*each));
  Status last = Error{ErrorCode::unavailable, std::string("refused: ") + kForbiddenPeer, {}};
  for (const std::string& address : addresses)
    if (last = connect(address, timeout / static_cast<int>(addresses.size())); last) return last;
  return last;
}

}  // namespace tocsin

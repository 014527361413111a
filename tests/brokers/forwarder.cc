#include "brokers/forwarder.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <map>
#include <system_error>
#include <vector>

namespace tocsin {
namespace {

void require(bool is_fine, const char* what) {
  if (!is_fine) throw std::system_error(errno, std::generic_category(), what);
}

sockaddr_in address_of(const std::string& at, std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  require(inet_pton(AF_INET, at.c_str(), &address.sin_addr) == 1, "inet_pton");
  return address;
}

const sockaddr* plain(const sockaddr_in& address) { return reinterpret_cast<const sockaddr*>(&address); }

// False: one of them has gone.
bool pass_on(int from, int to) {
  std::array<char, 65536> bytes;
  const ssize_t n = ::recv(from, bytes.data(), bytes.size(), 0);
  return n > 0 && ::send(to, bytes.data(), static_cast<std::size_t>(n), MSG_NOSIGNAL) == n;
}

}  // namespace

Forwarder::Forwarder(const std::string& at, std::uint16_t to)
    : to_(to), listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)), stop_(::eventfd(0, EFD_CLOEXEC)) {
  require(listener_ >= 0 && stop_ >= 0, "socket");
  sockaddr_in address = address_of(at, 0);
  socklen_t size = sizeof address;
  require(::bind(listener_, plain(address), size) == 0, "bind");
  require(::listen(listener_, SOMAXCONN) == 0, "listen");
  require(::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) == 0, "getsockname");
  port_ = ntohs(address.sin_port);
  thread_ = std::thread([this] { run(); });
}

Forwarder::~Forwarder() {
  ::eventfd_write(stop_, 1);
  thread_.join();
  ::close(listener_);
  ::close(stop_);
}

void Forwarder::run() const {
  std::map<int, int> peers;  // both ways
  for (;;) {
    std::vector<pollfd> waiting{{stop_, POLLIN, 0}, {listener_, POLLIN, 0}};
    for (const auto& [one, other] : peers) waiting.push_back({one, POLLIN, 0});
    ::poll(waiting.data(), waiting.size(), -1);
    if (waiting[0].revents != 0) break;
    for (std::size_t i = 2; i < waiting.size(); ++i) {
      const auto peer = peers.find(waiting[i].fd);
      if (waiting[i].revents == 0 || peer == peers.end() || pass_on(peer->first, peer->second)) continue;
      const auto [one, other] = *peer;
      peers.erase(one), peers.erase(other);
      ::close(one), ::close(other);
    }
    if (waiting[1].revents == 0) continue;
    const int near = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    const int far = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_in there = address_of("127.0.0.1", to_);
    if (near >= 0 && far >= 0 && ::connect(far, plain(there), sizeof there) == 0) {
      peers[near] = far, peers[far] = near;
    } else {
      ::close(near), ::close(far);
    }
  }
  for (const auto& [one, other] : peers) ::close(one);
}

}  // namespace tocsin

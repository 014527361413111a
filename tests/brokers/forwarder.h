// A second way to a server on loopback: what connects to it is connected to 127.0.0.1.
#pragma once

#include <cstdint>
#include <string>
#include <thread>

namespace tocsin {

// Thread: owner only. Throws std::system_error when it cannot listen.
class Forwarder {
 public:
  // `at`: an address of this machine.
  Forwarder(const std::string& at, std::uint16_t to);
  ~Forwarder();
  Forwarder(const Forwarder&) = delete;
  Forwarder& operator=(const Forwarder&) = delete;

  std::uint16_t port() const { return port_; }

 private:
  void run() const;

  const std::uint16_t to_;
  std::uint16_t port_ = 0;
  int listener_ = -1;
  int stop_ = -1;  // an eventfd
  std::thread thread_;
};

}  // namespace tocsin

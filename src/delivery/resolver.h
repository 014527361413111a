// Resolver: resolves host names to addresses without blocking the caller. Used by the HTTP sender and the broker
// connections.
#pragma once

#include <boost/asio/ip/address.hpp>
#include <boost/system/error_code.hpp>
#include <functional>
#include <string>
#include <vector>

#include "base/worker_pool.h"

namespace tocsin {

class Resolver {
 public:
  using Addresses = std::vector<boost::asio::ip::address>;
  // `addresses`: in order of preference; empty if `ec` is set.
  using Done = std::function<void(const boost::system::error_code& ec, Addresses addresses)>;
  virtual ~Resolver() = default;
  // Must not block. `done` is called at most once, on any thread, perhaps inside this call; never if the resolver is
  // destroyed before the lookup begins. A lookup may take for ever, and outlive the resolver: `done` must own what it
  // touches. Thread: any.
  virtual void resolve(const std::string& host, Done done) = 0;
};

// Calls getaddrinfo(), which blocks, on threads of its own. A lookup beyond kMostWaiting fails at once (try_again).
class SystemResolver final : public Resolver {
 public:
  // Callers have one lookup per origin at a time, so only four hanging names make a fifth origin wait.
  static constexpr int kThreads = 4;
  static constexpr std::size_t kMostWaiting = 1024;

  void resolve(const std::string& host, Done done) override;

 private:
  WorkerPool threads_{kThreads, kMostWaiting};
};

}  // namespace tocsin

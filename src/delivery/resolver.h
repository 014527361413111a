// Resolver: resolves host names to addresses without blocking the caller. Used by HttpSender and the broker connections
// (broker/peer.h).
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
  // Must not block. `done` is called at most once, on any thread, perhaps inside this call. It is not called if the
  // resolver is destroyed before the lookup begins. A lookup may take for ever and outlive the resolver, so `done` must
  // own what it uses. Thread: any.
  virtual void resolve(const std::string& host, Done done) = 0;
};

// Calls getaddrinfo(), which blocks, on kThreads threads. If kMostWaiting lookups wait, a further one fails at once
// (try_again).
class SystemResolver final : public Resolver {
 public:
  // Callers have one lookup per origin at a time, so four hanging names are needed to delay a fifth one.
  static constexpr int kThreads = 4;
  static constexpr std::size_t kMostWaiting = 1024;

  void resolve(const std::string& host, Done done) override;

 private:
  WorkerPool threads_{kThreads, kMostWaiting};
};

}  // namespace tocsin

// The endpoints that webhooks go to (scheme, host, port), and how each is doing.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "delivery/circuit_breaker.h"

namespace tocsin {

// One endpoint, shared by all types that go there.
// Thread: any.
class Endpoint {
 public:
  using Permit = CircuitBreaker::Permit;
  using State = CircuitBreaker::State;
  // Called after every change of state or room, outside the lock; `again_at`: when it changes by itself, or the
  // maximum.
  using OnChange = std::function<void(State now, MonoTime again_at)>;

  Endpoint(std::string origin, BreakerOptions options, const Clock& clock, OnChange on_change)
      : origin_(std::move(origin)), clock_(clock), on_change_(std::move(on_change)), breaker_(options) {}

  const std::string& origin() const { return origin_; }

  // As CircuitBreaker.
  std::optional<Permit> admit();
  void answered();
  void failed(Permit permit);
  void abandoned(Permit permit);
  State state() const;
  std::size_t room() const;
  Duration pause_left() const;

 private:
  void tell(bool is_changed);

  const std::string origin_;
  const Clock& clock_;
  const OnChange on_change_;
  mutable std::mutex mutex_;
  CircuitBreaker breaker_;
};

// Thread: any.
class Endpoints {
 public:
  Endpoints(BreakerOptions options, const Clock& clock, Endpoint::OnChange on_change)
      : options_(options), clock_(clock), on_change_(std::move(on_change)) {}

  // The same one for as long as anybody holds it.
  std::shared_ptr<Endpoint> at(const std::string& origin);

  int not_closed() const;  // how many are paused or on trial
  std::int64_t trips() const { return trips_; }

 private:
  const BreakerOptions options_;
  const Clock& clock_;
  const Endpoint::OnChange on_change_;
  std::atomic<std::int64_t> trips_{0};
  mutable std::mutex mutex_;
  std::unordered_map<std::string, std::weak_ptr<Endpoint>> by_origin_;
};

}  // namespace tocsin

// The endpoints of webhooks (scheme, host, port): per endpoint a circuit breaker and a start pool.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "core/endpoint_info.h"
#include "delivery/circuit_breaker.h"
#include "tocsin/start_pool.h"

namespace tocsin {

// One endpoint, shared by all types that go there: its breaker, and the capacity for attempts.
//
// At most `connections` requests are under way. While answers are quick, as many attempts again may wait for a
// connection, so that no connection is idle during the next claim. The slower the answers, the fewer may wait: their
// start window would end first. Before the first answer none may wait.
// Thread: any.
class Endpoint final : public StartPool {
 public:
  using Permit = CircuitBreaker::Permit;
  using State = CircuitBreaker::State;
  // Called after every change of state or capacity, outside the lock. `again_at`: when the pause ends, or the maximum.
  using OnChange = std::function<void(State now, MonoTime again_at)>;

  Endpoint(std::string origin, BreakerOptions options, std::size_t connections, const Clock& clock, OnChange on_change)
      : origin_(std::move(origin)),
        clock_(clock),
        on_change_(std::move(on_change)),
        connections_(connections),
        breaker_(options) {}

  const std::string& origin() const { return origin_; }

  // As CircuitBreaker's. `took`: how long the attempt had the connection.
  std::optional<Permit> admit();
  void answered(Duration took);
  void failed(Permit permit, Duration took);
  void abandoned(Permit permit);
  State state() const;
  Duration pause_left() const;

  // Call when an attempt was released because no connection became free in time. No attempt may wait then until answers
  // are quick again.
  void connection_wait_timed_out();

  // For display: what was wrong with the latest attempt that was not a success, answered or not.
  void note_error(const std::string& message);
  EndpointInfo info() const;

  std::size_t capacity() const override;
  double starts_per_s() const override;
  std::string name() const override { return "its endpoint " + origin_; }

 private:
  void tell(bool is_changed);  // calls on_change_
  void took(Duration time) TOCSIN_REQUIRES(mutex_);
  std::size_t may_wait() const TOCSIN_REQUIRES(mutex_);

  // Attempts may wait for a connection while answers take no longer than this on average: a fifth of the start window.
  static constexpr Duration kQuick = std::chrono::milliseconds(100);
  static constexpr Duration kSlow = std::chrono::seconds(1);  // none may wait
  static constexpr std::size_t kLongestError = 300;           // bytes

  const std::string origin_;
  const Clock& clock_;
  const OnChange on_change_;
  const std::size_t connections_;
  mutable Mutex mutex_;
  CircuitBreaker breaker_ TOCSIN_GUARDED_BY(mutex_);
  std::optional<Duration> mean_ TOCSIN_GUARDED_BY(mutex_);       // of the last 16 attempts or so
  std::size_t in_flight_ TOCSIN_GUARDED_BY(mutex_) = 0;          // permits out
  const char* last_attempt_ TOCSIN_GUARDED_BY(mutex_) = "idle";  // "ok": it was answered; "unavailable": it was not
  bool has_answered_ TOCSIN_GUARDED_BY(mutex_) = false;
  std::string last_error_ TOCSIN_GUARDED_BY(mutex_);
  MonoTime last_error_at_ TOCSIN_GUARDED_BY(mutex_){};
};

// Thread: any.
class Endpoints {
 public:
  // `connections`: at once, to each endpoint.
  Endpoints(BreakerOptions options, std::size_t connections, const Clock& clock, Endpoint::OnChange on_change)
      : options_(options), connections_(connections), clock_(clock), on_change_(std::move(on_change)) {}

  // The endpoint of an origin; the same object as long as a reference to it exists.
  std::shared_ptr<Endpoint> at(const std::string& origin);

  std::vector<EndpointInfo> infos() const;
  int tripped_breakers() const;                  // endpoints whose breaker is open or half open
  std::int64_t trips() const { return trips_; }  // how often a breaker has opened

 private:
  const BreakerOptions options_;
  const std::size_t connections_;
  const Clock& clock_;
  const Endpoint::OnChange on_change_;
  std::atomic<std::int64_t> trips_{0};
  mutable Mutex mutex_;
  std::unordered_map<std::string, std::weak_ptr<Endpoint>> by_origin_ TOCSIN_GUARDED_BY(mutex_);
};

}  // namespace tocsin

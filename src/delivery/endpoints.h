// Endpoint: what all webhook types that send to one origin (scheme, host and port) share: a circuit breaker, and a
// start pool (tocsin/start_pool.h), which bounds how many attempts may be started at once. Endpoints: all endpoints of
// a node. Owned by WebhookKind (webhook.h).
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

// The capacity of the start pool:
//  - `connections` requests under way;
//  - as many waiting ones, while attempts take at most kQuick on average, so that a free connection has work at once;
//  - fewer waiting ones the longer attempts take, because those would wait past their start_by; none at a mean of kSlow
//    or more, nor before the first answer or failure;
//  - less, if the circuit breaker allows less.
// Thread: any.
class Endpoint final : public StartPool {
 public:
  using Permit = CircuitBreaker::Permit;
  using State = CircuitBreaker::State;
  // Called when the breaker allows more or fewer attempts than before, by the thread whose call changed it, with no
  // lock of this object held. Not called when only the mean or the time changes the capacity. `again_at`: the end of
  // the back-off, when attempts may begin again without a call of OnChange; MonoTime::max(): no back-off.
  using OnChange = std::function<void(State now, MonoTime again_at)>;

  Endpoint(std::string origin, BreakerOptions options, std::size_t connections, const Clock& clock, OnChange on_change)
      : origin_(std::move(origin)),
        clock_(clock),
        on_change_(std::move(on_change)),
        connections_(connections),
        breaker_(options) {}

  const std::string& origin() const { return origin_; }

  // admit(): the permission to begin an attempt; nullopt: no attempt may begin now. Exactly one of the next three calls
  // ends a permit. `took`: time since admit().
  //  - answered(): an HTTP answer of any status. It is not given the permit, because every answer closes the breaker.
  //  - failed(): the endpoint gave no answer.
  //  - abandoned(): the attempt ended for a reason that says nothing about the endpoint.
  std::optional<Permit> admit();
  void answered(Duration took);
  void failed(Permit permit, Duration took);
  void abandoned(Permit permit);
  State state() const;
  Duration pause_left() const;  // rest of the back-off; 0: not open

  // Call when an attempt was released because no connection became free in time. It raises the mean
  // duration to kSlow or more, so capacity() allows no waiting attempts until the mean has fallen again.
  void connection_wait_timed_out();

  // For display: the error of the latest unsuccessful attempt, answered or not.
  void note_error(const std::string& message);
  EndpointInfo info() const;

  std::size_t capacity() const override;
  double starts_per_s() const override;  // connections by mean duration; infinity before the first result
  std::string name() const override { return "its endpoint " + origin_; }

 private:
  void tell(bool is_changed);  // calls on_change_ if `is_changed`
  void took(Duration time) TOCSIN_REQUIRES(mutex_);
  std::size_t may_wait() const TOCSIN_REQUIRES(mutex_);

  static constexpr Duration kQuick = std::chrono::milliseconds(100);  // a fifth of EngineConfig::start_window
  static constexpr Duration kSlow = std::chrono::seconds(1);
  static constexpr std::size_t kLongestError = 300;  // bytes

  const std::string origin_;
  const Clock& clock_;
  const OnChange on_change_;
  const std::size_t connections_;
  mutable Mutex mutex_;
  CircuitBreaker breaker_ TOCSIN_GUARDED_BY(mutex_);
  std::optional<Duration> mean_ TOCSIN_GUARDED_BY(mutex_);       // duration; each attempt counts a sixteenth
  std::size_t in_flight_ TOCSIN_GUARDED_BY(mutex_) = 0;          // permits not ended
  const char* last_attempt_ TOCSIN_GUARDED_BY(mutex_) = "idle";  // "ok": it was answered; "unavailable": it was not
  bool has_answered_ TOCSIN_GUARDED_BY(mutex_) = false;
  std::string last_error_ TOCSIN_GUARDED_BY(mutex_);
  MonoTime last_error_at_ TOCSIN_GUARDED_BY(mutex_){};
};

// The endpoints that handlers use, by origin. Thread: any.
class Endpoints {
 public:
  // Arguments: as for Endpoint. REQUIRES: this object outlives every Endpoint that at() returns.
  Endpoints(BreakerOptions options, std::size_t connections, const Clock& clock, Endpoint::OnChange on_change)
      : options_(options), connections_(connections), clock_(clock), on_change_(std::move(on_change)) {}

  // The endpoint of an origin; the same object as long as a reference to it exists.
  std::shared_ptr<Endpoint> at(const std::string& origin);

  std::vector<EndpointInfo> infos() const;       // in no order
  int tripped_breakers() const;                  // endpoints whose breaker is not closed
  std::int64_t trips() const { return trips_; }  // back-offs begun at all endpoints since the start

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

// CircuitBreaker: decides when attempts at one endpoint may begin. After several failures in a row (no HTTP answer of
// any status) none begins for a while (the back-off); then one at a time, until one is answered. Each Endpoint has one
// (ADR 0014).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "tocsin/clock.h"

namespace tocsin {

struct BreakerOptions {
  // Failures in a row that open the breaker, of all types together. Few, so that those of one connection pool open it
  // at once; more than one, because a single failure may be caused by its job.
  int failures = 8;
  Duration first_pause = std::chrono::seconds(1);  // the first back-off
  // Each back-off is twice the one before, up to this: an endpoint that answers again may be tried after this time at
  // the latest. first_pause applies again to a breaker that is closed and whose last back-off ended at least this long
  // ago.
  Duration longest_pause = std::chrono::seconds(10);
  // Attempts at once before the first answer: bounds the slots that an endpoint that never answers can hold.
  std::size_t untried_capacity = 128;
};

// A pure state machine; time is an argument and must not go back.
// Thread: owner only.
class CircuitBreaker {
 public:
  enum class State {
    closed,     // attempts begin as they come
    open,       // none begins before the back-off ends
    half_open,  // one at a time
  };
  // The permission to begin one attempt. REQUIRES: exactly one call of answered, failed or abandoned ends it.
  using Permit = std::uint64_t;

  explicit CircuitBreaker(BreakerOptions options = {}) : options_(options) {}

  // nullopt: no attempt may begin now.
  std::optional<Permit> admit(MonoTime now);

  // End a permit. True: waiting attempts must be looked at again, because state() or capacity() changed or the one
  // attempt of the half-open state is over. (The end of the back-off changes both without a call; see pause_left().) An
  // answer closes the breaker, whenever its attempt began. A failure is ignored if its attempt began before the last of
  // these calls that opened or closed it.
  bool answered();
  bool failed(Permit permit, MonoTime now);
  bool abandoned(Permit permit);  // the attempt ended without a result of the endpoint

  State state(MonoTime now) const;
  std::size_t capacity(MonoTime now) const;  // attempts at once; the maximum of size_t: any number
  Duration pause_left(MonoTime now) const;   // 0 unless open

 private:
  void open(MonoTime now);

  const BreakerOptions options_;
  bool is_closed_ = true;
  bool is_tried_ = false;    // an attempt was answered
  bool is_probing_ = false;  // half-open: the one attempt is under way
  Permit epoch_ = 1;         // of the permits that count: the next with every change of state
  int failures_ = 0;
  Duration pause_{0};
  MonoTime pause_end_{};
};

}  // namespace tocsin

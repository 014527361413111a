// CircuitBreaker: decides when attempts at one endpoint (scheme, host and port of webhooks) may begin. After several
// failures in a row no attempt begins for a while: the back-off. Then one attempt at a time begins, until one is
// answered. A failure is an attempt without any HTTP answer. Owned by Endpoint (ADR 0014).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "tocsin/clock.h"

namespace tocsin {

struct BreakerOptions {
  // Failures in a row, of all types together, that open the breaker. Few, so that the failures of one connection pool
  // open it at once; more than one, because a single failure may be caused by its job.
  int failures = 8;
  Duration first_pause = std::chrono::seconds(1);  // the first back-off
  // Each back-off is twice as long as the one before, up to this. So an endpoint that works again is tried after this
  // time at the latest. The back-off starts again at first_pause if the breaker is closed and its last back-off ended
  // at least longest_pause ago.
  Duration longest_pause = std::chrono::seconds(10);
  // Attempts under way before the first answer: bounds the slots that an endpoint which never answers can hold.
  std::size_t untried_capacity = 128;
};

// A pure state machine: `now` is an argument, and must not go back. Thread: owner only (Endpoint calls it under its
// lock).
class CircuitBreaker {
 public:
  enum class State {
    closed,     // attempts begin at any time
    open,       // no attempt begins before the end of the back-off
    half_open,  // one attempt at a time
  };
  // The permission to begin one attempt. REQUIRES: exactly one call of answered, failed or abandoned ends it.
  using Permit = std::uint64_t;

  explicit CircuitBreaker(BreakerOptions options = {}) : options_(options) {}

  // nullopt: no attempt may begin now.
  std::optional<Permit> admit(MonoTime now);

  // Each ends a permit. Returns true if waiting attempts must be looked at again: state() or capacity() changed, or the
  // one attempt of the half-open state has ended. (The end of the back-off changes both without a call; see
  // pause_left().)
  //  - answered(): closes the breaker, whenever the attempt began.
  //  - failed(): ignored if the breaker was opened or closed after the attempt began.
  //  - abandoned(): the attempt ended without a result of the endpoint.
  bool answered();
  bool failed(Permit permit, MonoTime now);
  bool abandoned(Permit permit);

  State state(MonoTime now) const;
  // Attempts under way at a time; the maximum of size_t: no limit. `under_way`: permits not ended. Older ones may hang
  // for long: half-open, one attempt may begin beside them.
  std::size_t capacity(MonoTime now, std::size_t under_way) const;
  Duration pause_left(MonoTime now) const;  // 0 unless open

 private:
  void open(MonoTime now);

  const BreakerOptions options_;
  bool is_closed_ = true;
  bool is_tried_ = false;    // an attempt was answered before
  bool is_probing_ = false;  // half-open: the one attempt is under way
  Permit epoch_ = 1;         // grows with every opening and closing; older permits do not count
  int failures_ = 0;
  Duration pause_{0};
  MonoTime pause_end_{};
};

}  // namespace tocsin

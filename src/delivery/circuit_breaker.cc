#include "delivery/circuit_breaker.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace tocsin {

std::optional<CircuitBreaker::Permit> CircuitBreaker::admit(MonoTime now) {
  if (is_closed_) return epoch_;
  if (now < pause_end_ || is_probing_) return {};
  is_probing_ = true;
  return epoch_;
}

bool CircuitBreaker::answered() {
  failures_ = 0;
  if (is_closed_) return !std::exchange(is_tried_, true);
  is_tried_ = true;
  is_closed_ = true;
  is_probing_ = false;
  ++epoch_;
  return true;
}

bool CircuitBreaker::failed(Permit permit, MonoTime now) {
  if (permit != epoch_) return false;
  ++failures_;
  if (is_closed_ && failures_ < options_.failures) return false;
  open(now);
  return true;
}

bool CircuitBreaker::abandoned(Permit permit) {
  if (permit != epoch_ || !is_probing_) return false;
  is_probing_ = false;
  return true;
}

void CircuitBreaker::open(MonoTime now) {
  // If the breaker was closed for a moment only, the back-off continues to grow.
  const bool is_relapse = pause_ > Duration(0) && (!is_closed_ || now - pause_end_ < options_.longest_pause);
  pause_ = is_relapse ? std::min(2 * pause_, options_.longest_pause) : options_.first_pause;
  pause_end_ = now + pause_;
  is_closed_ = is_probing_ = false;
  ++epoch_;
}

CircuitBreaker::State CircuitBreaker::state(MonoTime now) const {
  return is_closed_ ? State::closed : now < pause_end_ ? State::open : State::half_open;
}

std::size_t CircuitBreaker::capacity(MonoTime now, std::size_t under_way) const {
  switch (state(now)) {
    case State::open:
      return 0;
    case State::half_open:
      return under_way + (is_probing_ ? 0 : 1);
    case State::closed:
      break;
  }
  return is_tried_ ? std::numeric_limits<std::size_t>::max() : options_.untried_capacity;
}

Duration CircuitBreaker::pause_left(MonoTime now) const {
  return is_closed_ ? Duration(0) : std::max(pause_end_ - now, Duration(0));
}

}  // namespace tocsin

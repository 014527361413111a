// Whether an endpoint deserves attempts: after a row of failures without an answer it gets a pause, then one attempt at
// a time until one is answered.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "tocsin/clock.h"

namespace tocsin {

struct BreakerOptions {
  // In a row, and it opens: more than one job's bad luck, fewer than what a pool of connections has in flight.
  int failures = 8;
  Duration first_pause = std::chrono::seconds(1);
  // Each pause is twice the one before, up to this: so long a recovery may go unseen.
  Duration longest_pause = std::chrono::seconds(10);
  // Attempts at once at an endpoint that has answered nothing yet: so many a dead one may hold until it is found out.
  std::size_t untried_room = 128;
};

// A pure state machine; time is an argument. Never goes back, or a pause lasts longer.
// Thread: owner only.
class CircuitBreaker {
 public:
  enum class State {
    closed,     // attempts begin as they come
    open,       // none begins before the pause ends
    half_open,  // one at a time
  };
  // One attempt that may begin; exactly one of answered, failed, abandoned takes it back.
  using Permit = std::uint64_t;

  explicit CircuitBreaker(BreakerOptions options = {}) : options_(options) {}

  // Empty: not now.
  std::optional<Permit> admit(MonoTime now);

  // Each is true when the state, or the room, changed. An answer closes it whenever its attempt began. A failure of an
  // attempt that began before the last change of state says nothing new.
  bool answered();
  bool failed(Permit permit, MonoTime now);
  bool abandoned(Permit permit);  // the attempt ended without telling anything of the endpoint

  State state(MonoTime now) const;
  std::size_t room(MonoTime now) const;     // attempts that it may have at once; the maximum: any number
  Duration pause_left(MonoTime now) const;  // 0 unless open
  MonoTime pause_end() const { return pause_end_; }

 private:
  void open(MonoTime now);

  const BreakerOptions options_;
  bool is_closed_ = true;
  bool is_tried_ = false;
  bool is_probing_ = false;
  Permit epoch_ = 1;  // of the permits that count: the next with every change of state
  int failures_ = 0;
  Duration pause_{0};
  MonoTime pause_end_{};
};

}  // namespace tocsin

// Scheduler: virtual time, and fibers that sleep in it. A whole simulated cluster runs in one thread, in an order that
// one seed decides.
#pragma once

#include <boost/context/fiber.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <vector>

#include "base/random.h"
#include "simulation/stack_switch.h"
#include "tocsin/clock.h"

namespace tocsin {

// Thread: owner only.
class Scheduler final : public Clock {
 public:
  using FiberId = std::uint64_t;

  explicit Scheduler(std::uint64_t seed) : random_(seed) {}

  MonoTime now() const override { return now_; }

  // Calls `work` at that time, outside any fiber. Events of the same time happen in random order.
  void at(MonoTime time, std::function<void()> work);
  void after(Duration time, std::function<void()> work) { at(now_ + time, std::move(work)); }

  // Starts `body` as a fiber, at once. Only inside a fiber may code sleep and wait.
  FiberId spawn(std::function<void()> body);
  // Ends a fiber where it waits; its stack is unwound. REQUIRES: not called from that fiber.
  void kill(FiberId fiber);
  void kill_all();

  // Inside a fiber only. wait_until() returns at `time`, or earlier after wake().
  void sleep(Duration time) { wait_until(now_ + time); }
  void wait_until(MonoTime time);
  void wake(FiberId fiber);

  // Runs the events before `end`, or until stop().
  void run_until(MonoTime end);
  void stop() { is_stopped_ = true; }
  std::uint64_t events() const { return events_; }

 private:
  struct Event {
    MonoTime time;
    std::uint64_t order;
    std::function<void()> work;
  };
  struct Later {
    bool operator()(const Event& a, const Event& b) const {
      return a.time != b.time ? a.time > b.time : a.order > b.order;
    }
  };
  struct Fiber {
    std::function<void()> body;     // empty once it has begun
    boost::context::fiber inside;   // the fiber's position, while it does not run
    boost::context::fiber outside;  // where wait_until() returns to, while the fiber runs
    std::uint64_t waits = 0;        // tells the alarm of an earlier wait from that of this one
    bool is_waiting = false;
    Stack stack;
    Stack outside_stack;           // that of `outside`: the thread's, or that of a fiber which kills this one
    void* inside_state = nullptr;  // AddressSanitizer's data about the stack
  };

  void begin(Fiber& fiber);
  void resume(FiberId id);
  // Switches into a fiber by `jump`; returns when the fiber waits or ends.
  template <class Jump>
  void enter(Fiber& fiber, Jump jump);

  Random random_;
  MonoTime now_{};
  std::uint64_t events_ = 0;
  bool is_stopped_ = false;
  std::priority_queue<Event, std::vector<Event>, Later> queue_;
  std::map<FiberId, std::unique_ptr<Fiber>> fibers_;
  FiberId last_fiber_ = 0;
  FiberId running_ = 0;
};

}  // namespace tocsin

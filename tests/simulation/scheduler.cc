#include "simulation/scheduler.h"

#include <algorithm>
#include <boost/context/pooled_fixedsize_stack.hpp>
#include <utility>

#include "base/assert.h"

namespace tocsin {
namespace {

constexpr std::size_t kStackBytes = 256 * 1024;  // sanitizers need more than half of it

// Stacks are used again: thousands of worlds need no more of them than one.
boost::context::pooled_fixedsize_stack& stacks() {
  static boost::context::pooled_fixedsize_stack pool(kStackBytes);
  return pool;
}

}  // namespace

void Scheduler::at(MonoTime time, std::function<void()> work) {
  // The upper half of the order is chance, the lower half keeps it unique.
  const std::uint64_t order = (random_.below(1u << 16) << 47) | ++events_;
  queue_.push({std::max(time, now_), order, std::move(work)});
}

Scheduler::FiberId Scheduler::spawn(std::function<void()> body) {
  const FiberId id = ++last_fiber_;
  auto fiber = std::make_unique<Fiber>();
  fiber->body = std::move(body);
  fibers_.emplace(id, std::move(fiber));
  at(now_, [this, id] { resume(id); });
  return id;
}

void Scheduler::begin(Fiber& fiber) {
  const boost::context::stack_context memory = stacks().allocate();
  fiber.stack = {static_cast<char*>(memory.sp) - memory.size, memory.size};
  const boost::context::preallocated place(memory.sp, memory.size, memory);
  fiber.inside =
      boost::context::fiber(std::allocator_arg, place, stacks(),
                            [&fiber, body = std::exchange(fiber.body, nullptr)](boost::context::fiber&& caller) {
                              after_switch(nullptr, &fiber.outside_stack);
                              fiber.outside = std::move(caller);
                              struct Leaving {  // by its end, or unwound by kill()
                                const Stack& to;
                                ~Leaving() { before_switch(nullptr, to); }
                              };
                              const Leaving leaving{fiber.outside_stack};
                              body();
                              return std::move(fiber.outside);
                            });
}

void Scheduler::kill(FiberId fiber) {
  TOCSIN_ASSERT(fiber != running_);
  const auto it = fibers_.find(fiber);
  if (it == fibers_.end()) return;
  const auto dying = std::move(it->second);
  fibers_.erase(it);
  if (dying->inside) enter(*dying, [&] { dying->inside = {}; });
}

void Scheduler::kill_all() {
  while (!fibers_.empty()) kill(fibers_.begin()->first);
}

template <class Jump>
void Scheduler::enter(Fiber& fiber, Jump jump) {
  void* state = nullptr;
  before_switch(&state, fiber.stack);
  jump();
  after_switch(state, nullptr);
}

void Scheduler::resume(FiberId id) {
  const auto it = fibers_.find(id);
  if (it == fibers_.end()) return;
  Fiber& fiber = *it->second;
  fiber.is_waiting = false;
  if (fiber.body) begin(fiber);
  const FiberId before = running_;
  running_ = id;
  enter(fiber, [&] { fiber.inside = std::move(fiber.inside).resume(); });
  running_ = before;
  if (!fiber.inside) fibers_.erase(id);
}

void Scheduler::wait_until(MonoTime time) {
  TOCSIN_ASSERT(running_ != 0);
  const FiberId id = running_;
  Fiber& fiber = *fibers_.at(id);
  const std::uint64_t wait = ++fiber.waits;
  fiber.is_waiting = true;
  if (time != MonoTime::max()) {
    at(time, [this, id, wait] {
      const auto it = fibers_.find(id);
      if (it != fibers_.end() && it->second->is_waiting && it->second->waits == wait) resume(id);
    });
  }
  struct Switch {
    Fiber& fiber;
    explicit Switch(Fiber& leaving) : fiber(leaving) { before_switch(&fiber.inside_state, fiber.outside_stack); }
    ~Switch() { after_switch(fiber.inside_state, &fiber.outside_stack); }  // also when kill() unwinds
  } const there_and_back(fiber);
  fiber.outside = std::move(fiber.outside).resume();
}

void Scheduler::wake(FiberId id) {
  const auto it = fibers_.find(id);
  if (it == fibers_.end() || !it->second->is_waiting) return;
  const std::uint64_t wait = it->second->waits;
  at(now_, [this, id, wait] {
    const auto found = fibers_.find(id);
    if (found != fibers_.end() && found->second->is_waiting && found->second->waits == wait) resume(id);
  });
}

void Scheduler::run_until(MonoTime end) {
  while (!is_stopped_ && !queue_.empty() && queue_.top().time <= end) {
    // The work may push, which moves what top() refers to.
    std::function<void()> work = std::move(const_cast<Event&>(queue_.top()).work);
    now_ = queue_.top().time;
    queue_.pop();
    work();
  }
  if (!is_stopped_) now_ = std::max(now_, end);
}

}  // namespace tocsin

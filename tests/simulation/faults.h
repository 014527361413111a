// What can go wrong between a session and the database. Which of it happens in a world, and how often, is drawn from
// its seed: a world with few kinds of faults goes deeper than one with all of them.
#pragma once

#include <algorithm>

#include "base/random.h"
#include "simulation/scheduler.h"
#include "simulation/trace.h"
#include "support/fake_sessions.h"

namespace tocsin {

struct FaultRates {  // chance per call
  double unavailable = 0;
  double conflict = 0;
  double late = 0;     // answered in doubt, happens afterwards
  double lost = 0;     // happens, the answer is lost
  double delay = 0;    // 0.1 ms .. 40 s, each way and while it works
  double starved = 0;  // chance per step of a stage: its thread gets no processor for a while
};

// Thread: owner only.
class Faults final : public FaultPoint {
 public:
  Faults(Scheduler& scheduler, Random& random, Trace& trace) : scheduler_(scheduler), random_(random), trace_(trace) {}

  FaultRates rates;

  // After `end` nothing goes wrong any more, and what was under way has arrived.
  void end_at(MonoTime end) { end_ = end; }
  void set_down_until(MonoTime time) { down_until_ = std::max(down_until_, time); }
  void come_back() { down_until_ = scheduler_.now(); }
  bool is_down() const { return scheduler_.now() < down_until_; }
  // Scans that begin before then end then: a node that knows nothing yet, while callers go on.
  void hold_scans_until(MonoTime time) { scans_held_until_ = std::min(time, end_); }
  std::uint64_t injected() const { return injected_; }
  // The change under way is the late effect of a call whose caller has given up.
  bool is_late() const { return is_late_; }

  Effect before(const FakeCall& call) override;
  void working(const FakeCall& call) override;
  bool after(const FakeCall& call) override;
  void keep(std::function<void()> effect) override;

  // Called before every step of a stage; may sleep.
  void before_step();
  // A call without an answer: until its caller gives up, or until `end`.
  void hang(MonoTime end);

 private:
  bool happens(double rate) { return scheduler_.now() < end_ && rate > 0 && random_.unit() < rate; }
  void travel(Duration typical);
  Duration any_delay();
  void tell(const FakeCall& call, const char* what);

  Scheduler& scheduler_;
  Random& random_;
  Trace& trace_;
  MonoTime end_ = MonoTime::max();
  MonoTime down_until_{};
  bool is_late_ = false;
  MonoTime scans_held_until_{};
  std::uint64_t injected_ = 0;
};

}  // namespace tocsin

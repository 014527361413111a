// Faults: the FaultPoint (support/fake_sessions.h) of one simulated database. It delays calls, makes them fail, or
// loses their answers. The seed of the simulation draws which kinds of faults happen, and how often: few kinds in one
// life reach deeper than all at once.
#pragma once

#include <algorithm>

#include "base/random.h"
#include "simulation/scheduler.h"
#include "simulation/trace.h"
#include "support/fake_sessions.h"

namespace tocsin {

struct FaultRates {  // probabilities per call
  double unavailable = 0;
  double conflict = 0;
  double late = 0;     // writes: Error in_doubt; the effect happens later
  double lost = 0;     // the effect happens, and the answer is lost
  double delay = 0;    // 0.1 ms to 40 s: of the request, the work or the answer
  double starved = 0;  // per step of a stage: its thread gets no processor, up to 0.3 s
};

// Thread: owner only.
class Faults final : public FaultPoint {
 public:
  Faults(Scheduler& scheduler, Random& random, Trace& trace) : scheduler_(scheduler), random_(random), trace_(trace) {}

  FaultRates rates;

  // After `end` no fault happens, and delayed calls and late effects have arrived.
  void end_at(MonoTime end) { end_ = end; }
  void set_down_until(MonoTime time) { down_until_ = std::max(down_until_, time); }
  void come_back() { down_until_ = scheduler_.now(); }
  bool is_down() const { return scheduler_.now() < down_until_; }
  // Scans that begin before `time` last until then: a node that starts knows no job yet, while callers continue.
  void hold_scans_until(MonoTime time) { scans_held_until_ = std::min(time, end_); }
  std::uint64_t injected() const { return injected_; }
  // Whether the present change is the late effect of a call that was answered with in_doubt.
  bool is_late() const { return is_late_; }

  Effect before(const FakeCall& call) override;
  void working(const FakeCall& call) override;
  bool after(const FakeCall& call) override;
  void keep(std::function<void()> effect) override;

  // Called before every step of a stage; may sleep (rate `starved`).
  void before_step();
  // Blocks a call that gets no answer: for up to 2 s, and not beyond `end`.
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

#include "simulation/faults.h"

#include <algorithm>
#include <cmath>

namespace tocsin {

void Faults::tell(const FakeCall& call, const char* what) {
  ++injected_;
  trace_.line(scheduler_.now(),
              "fault " + std::string(call.verb) + " of session " + std::to_string(call.session) + ": " + what);
}

// Even on a logarithmic scale: as many around a millisecond as around ten seconds.
Duration Faults::any_delay() {
  constexpr double kShortest = 100, kLongest = 40e6;
  return Duration(static_cast<std::int64_t>(kShortest * std::pow(kLongest / kShortest, random_.unit())));
}

void Faults::travel(Duration typical) {
  Duration time =
      typical / 2 + Duration(static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(typical.count()))));
  if (happens(rates.delay)) {
    time = any_delay();
    ++injected_;
  }
  if (scheduler_.now() < end_) time = std::min<Duration>(time, end_ - scheduler_.now());
  scheduler_.sleep(time);
}

FaultPoint::Effect Faults::before(const FakeCall& call) {
  travel(Duration(100));
  if (call.verb == "scan" && scheduler_.now() < scans_held_until_) scheduler_.wait_until(scans_held_until_);
  if (is_down()) {
    hang(down_until_);
    return Effect::unavailable;
  }
  if (happens(rates.unavailable)) return tell(call, "unavailable"), Effect::unavailable;
  if (happens(rates.conflict)) return tell(call, "conflict"), Effect::conflict;
  if (call.is_write && happens(rates.late)) return tell(call, "late"), Effect::late;
  return Effect::happens;
}

void Faults::working(const FakeCall&) { travel(Duration(100)); }

bool Faults::after(const FakeCall& call) {
  travel(Duration(100));
  if (is_down() || happens(rates.lost)) return tell(call, "answer lost"), false;
  return true;
}

void Faults::hang(MonoTime end) {
  const Duration patience(random_.below(2'000'000));
  if (scheduler_.now() <= end_) end = std::min(end, end_);
  scheduler_.sleep(std::min<Duration>(patience, std::max<Duration>(end - scheduler_.now(), Duration(0))));
}

void Faults::before_step() {
  if (happens(rates.starved))
    scheduler_.sleep(std::min<Duration>(Duration(random_.below(300'000)), end_ - scheduler_.now()));
}

void Faults::keep(std::function<void()> effect) {
  const Duration most = std::max<Duration>(end_ - scheduler_.now(), Duration(0));
  scheduler_.after(std::min(any_delay(), most), [this, effect = std::move(effect)] {
    trace_.line(scheduler_.now(), "a late effect arrives");
    is_late_ = true;
    effect();
    is_late_ = false;
  });
}

}  // namespace tocsin

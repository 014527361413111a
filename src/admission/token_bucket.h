// TokenBucket: paces starts at a rate. Tokens come at the rate; a start takes one. The bucket holds one second of the
// rate, at least one token, so a pause is followed by a burst of a second at most. Used by FlowControl, one per type
// and rate. Thread: owner only.
#pragma once

#include <cstddef>
#include <optional>

#include "tocsin/clock.h"

namespace tocsin {

class TokenBucket {
 public:
  // Adds the tokens that came at `per_s` since the last call, but none after `until`, and returns how many there are.
  // The first call finds none.
  double fill(double per_s, MonoTime until, MonoTime now);
  // REQUIRES: n is at most the whole number of tokens that fill() returned.
  void take(std::size_t n);
  // Returns tokens of starts that do not happen. Nothing before the first fill().
  void put_back(std::size_t n);
  // Time until the next token when none comes sooner than at `per_s`; a second where that is 0.
  Duration until_next(double per_s) const;
  // Tokens taken per second since the last call, which begins the next count; over a tenth of a second at least.
  double measure_use(MonoTime now);

 private:
  double tokens_ = 0;
  std::optional<MonoTime> filled_;
  double taken_ = 0;  // since measured_
  MonoTime measured_{};
};

}  // namespace tocsin

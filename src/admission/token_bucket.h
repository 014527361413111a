// TokenBucket: paces starts at a rate. Tokens come at the rate; a start takes one. The bucket holds one second of the
// rate, at least one token, so a pause is followed by a burst of a second at most. FlowControl has one per
// type and rate, under its mutex. Not safe for several threads.
#pragma once

#include <cstddef>
#include <optional>

#include "tocsin/clock.h"

namespace tocsin {

class TokenBucket {
 public:
  // Adds the tokens that came at `per_s` since the last call, but none after `until` (the end of the grant), and
  // returns how many there are. The first call finds none.
  double fill(double per_s, MonoTime until, MonoTime now);
  // REQUIRES: n is at most the whole number of tokens that fill() returned.
  void take(std::size_t n);
  // Returns tokens of starts that do not happen. Does nothing before the first fill().
  void put_back(std::size_t n);
  // Time until the next token at the rate `per_s`, as of the last fill(); the longest possible if `per_s` is 0.
  Duration until_next(double per_s) const;
  // Tokens taken per second since the last call (the first one: since the clock began). That time counts as at least
  // 0.1 s. Begins the next count.
  double measure_use(MonoTime now);

 private:
  double tokens_ = 0;
  std::optional<MonoTime> filled_;
  double taken_ = 0;  // since measured_
  MonoTime measured_{};
};

}  // namespace tocsin

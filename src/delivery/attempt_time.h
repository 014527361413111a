// How long a type's attempts take, to decide how many to hold.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "tocsin/clock.h"

namespace tocsin {

// A moving mean over about the last 16 samples, at least a microsecond; a millisecond before the first.
// Thread: any.
class AttemptTime {
 public:
  Duration mean() const { return Duration(mean_us_.load()); }

  void took(Duration time) {
    const std::int64_t mean = mean_us_.load();  // two at once lose one of the samples, which does no harm
    mean_us_ = std::max<std::int64_t>(1, mean + (time.count() - mean) / 16);
  }

  // How many attempts, one after the other, fill `time`: 1 to `most`.
  std::size_t fitting(Duration time, std::size_t most) const {
    return std::clamp<std::size_t>(static_cast<std::size_t>(time / mean()), 1, most);
  }

 private:
  std::atomic<std::int64_t> mean_us_{1000};
};

}  // namespace tocsin

#include "admission/token_bucket.h"

#include <algorithm>
#include <cmath>

#include "base/assert.h"

namespace tocsin {
namespace {

double in_seconds(Duration length) { return std::chrono::duration<double>(length).count(); }

}  // namespace

double TokenBucket::fill(double per_s, MonoTime until, MonoTime now) {
  const MonoTime end = std::min(now, until);
  if (filled_ && end > *filled_) tokens_ += in_seconds(end - *filled_) * per_s;
  tokens_ = std::min(tokens_, std::max(1.0, per_s));
  filled_ = now;
  return tokens_;
}

void TokenBucket::take(std::size_t n) {
  TOCSIN_ASSERT(static_cast<double>(n) <= tokens_);
  tokens_ -= static_cast<double>(n);
  taken_ += static_cast<double>(n);
}

void TokenBucket::put_back(std::size_t n) {
  if (!filled_) return;
  tokens_ += static_cast<double>(n);
  taken_ -= static_cast<double>(n);
}

Duration TokenBucket::until_next(double per_s) const {
  if (per_s <= 0) return Duration::max();
  const double missing = std::floor(tokens_) + 1 - tokens_;
  constexpr double kLongest = 1e6;  // of seconds
  return Duration(static_cast<std::int64_t>(std::min(missing / per_s, kLongest) * 1e6) + 1);
}

double TokenBucket::measure_use(MonoTime now) {
  const double passed = std::max(0.1, in_seconds(now - measured_));
  const double use = taken_ / passed;
  taken_ = 0;
  measured_ = now;
  return use;
}

}  // namespace tocsin

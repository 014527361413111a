#include "admission/token_bucket.h"

#include <algorithm>
#include <cmath>

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
  tokens_ -= static_cast<double>(n);
  taken_ += static_cast<double>(n);
}

void TokenBucket::put_back(std::size_t n) {
  if (!filled_) return;
  tokens_ += static_cast<double>(n);
  taken_ -= static_cast<double>(n);
}

Duration TokenBucket::until_next(double per_s) const {
  const double missing = std::floor(tokens_) + 1 - tokens_;
  const double wait_s = per_s > 0 ? missing / per_s : 1;
  return Duration(static_cast<std::int64_t>(std::min(wait_s, 1.0) * 1e6) + 1);
}

double TokenBucket::measure_use(MonoTime now) {
  const double passed = std::max(0.1, in_seconds(now - measured_));
  const double use = taken_ / passed;
  taken_ = 0;
  measured_ = now;
  return use;
}

}  // namespace tocsin

#include "delivery/endpoints.h"

#include <algorithm>
#include <limits>

namespace tocsin {

std::optional<Endpoint::Permit> Endpoint::admit() {
  MutexLock lock(mutex_);
  const auto permit = breaker_.admit(clock_.now());
  in_flight_ += permit ? 1 : 0;
  return permit;
}

void Endpoint::answered(Duration took) {
  MutexLock lock(mutex_);
  this->took(took);
  last_attempt_ = "ok";
  has_answered_ = true;
  in_flight_ -= in_flight_ > 0 ? 1 : 0;
  const bool is_changed = breaker_.answered();
  lock.unlock();
  tell(is_changed);
}

void Endpoint::failed(Permit permit, Duration took) {
  MutexLock lock(mutex_);
  this->took(took);
  last_attempt_ = "unavailable";
  in_flight_ -= in_flight_ > 0 ? 1 : 0;
  const bool is_changed = breaker_.failed(permit, clock_.now());
  lock.unlock();
  tell(is_changed);
}

void Endpoint::abandoned(Permit permit) {
  MutexLock lock(mutex_);
  in_flight_ -= in_flight_ > 0 ? 1 : 0;
  const bool is_changed = breaker_.abandoned(permit);
  lock.unlock();
  tell(is_changed);
}

Endpoint::State Endpoint::state() const {
  MutexLock lock(mutex_);
  return breaker_.state(clock_.now());
}

void Endpoint::note_error(const std::string& message) {
  MutexLock lock(mutex_);
  last_error_ = message.substr(0, kLongestError);
  last_error_at_ = clock_.now();
}

EndpointInfo Endpoint::info() const {
  MutexLock lock(mutex_);
  const MonoTime now = clock_.now();
  const State state = breaker_.state(now);
  EndpointInfo info{"webhook",
                    origin_,
                    state == State::open        ? "paused"
                    : state == State::half_open ? "trying"
                                                : last_attempt_,
                    in_flight_,
                    connections_,
                    has_answered_ ? mean_ : std::nullopt,
                    breaker_.pause_left(now),
                    last_error_,
                    std::nullopt};
  if (!last_error_.empty()) info.error_age = now - last_error_at_;
  return info;
}

void Endpoint::took(Duration time) {
  const Duration mean = mean_.value_or(time);
  mean_ = std::max(Duration(1), mean + (time - mean) / 16);
}

void Endpoint::connection_wait_timed_out() {
  MutexLock lock(mutex_);
  mean_ = std::max(mean_.value_or(kSlow), kSlow);
}

std::size_t Endpoint::may_wait() const {
  if (!mean_ || *mean_ >= kSlow) return 0;
  return *mean_ <= kQuick
             ? connections_
             : connections_ * static_cast<std::size_t>(kQuick.count()) / static_cast<std::size_t>(mean_->count());
}

std::size_t Endpoint::capacity() const {
  MutexLock lock(mutex_);
  return std::min(breaker_.capacity(clock_.now(), in_flight_), connections_ + may_wait());
}

double Endpoint::starts_per_s() const {
  MutexLock lock(mutex_);
  return mean_ ? static_cast<double>(connections_) / std::chrono::duration<double>(*mean_).count()
               : std::numeric_limits<double>::infinity();
}

Duration Endpoint::pause_left() const {
  MutexLock lock(mutex_);
  return breaker_.pause_left(clock_.now());
}

void Endpoint::tell(bool is_changed) {
  if (!is_changed) return;
  const Duration pause = pause_left();
  on_change_(state(), pause > Duration(0) ? clock_.now() + pause : MonoTime::max());
}

std::shared_ptr<Endpoint> Endpoints::at(const std::string& origin) {
  MutexLock lock(mutex_);
  if (auto known = by_origin_[origin].lock()) return known;
  std::erase_if(by_origin_, [](const auto& entry) { return entry.second.expired(); });
  auto endpoint = std::make_shared<Endpoint>(origin, options_, connections_, clock_,
                                             [this](Endpoint::State now, MonoTime again_at) {
                                               if (now == Endpoint::State::open) ++trips_;
                                               on_change_(now, again_at);
                                             });
  by_origin_[origin] = endpoint;
  return endpoint;
}

std::vector<EndpointInfo> Endpoints::infos() const {
  MutexLock lock(mutex_);
  std::vector<EndpointInfo> all;
  for (const auto& [origin, held] : by_origin_)
    if (const auto endpoint = held.lock()) all.push_back(endpoint->info());
  return all;
}

int Endpoints::tripped_breakers() const {
  MutexLock lock(mutex_);
  int n = 0;
  for (const auto& [origin, held] : by_origin_) {
    const auto endpoint = held.lock();
    n += endpoint && endpoint->state() != Endpoint::State::closed;
  }
  return n;
}

}  // namespace tocsin

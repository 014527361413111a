#include "delivery/endpoints.h"

namespace tocsin {

std::optional<Endpoint::Permit> Endpoint::admit() {
  std::lock_guard lock(mutex_);
  return breaker_.admit(clock_.now());
}

void Endpoint::answered() {
  std::unique_lock lock(mutex_);
  const bool is_changed = breaker_.answered();
  lock.unlock();
  tell(is_changed);
}

void Endpoint::failed(Permit permit) {
  std::unique_lock lock(mutex_);
  const bool is_changed = breaker_.failed(permit, clock_.now());
  lock.unlock();
  tell(is_changed);
}

void Endpoint::abandoned(Permit permit) {
  std::unique_lock lock(mutex_);
  const bool is_changed = breaker_.abandoned(permit);
  lock.unlock();
  tell(is_changed);
}

Endpoint::State Endpoint::state() const {
  std::lock_guard lock(mutex_);
  return breaker_.state(clock_.now());
}

std::size_t Endpoint::room() const {
  std::lock_guard lock(mutex_);
  return breaker_.room(clock_.now());
}

Duration Endpoint::pause_left() const {
  std::lock_guard lock(mutex_);
  return breaker_.pause_left(clock_.now());
}

void Endpoint::tell(bool is_changed) {
  if (!is_changed) return;
  const Duration pause = pause_left();
  on_change_(state(), pause > Duration(0) ? clock_.now() + pause : MonoTime::max());
}

std::shared_ptr<Endpoint> Endpoints::at(const std::string& origin) {
  std::lock_guard lock(mutex_);
  if (auto known = by_origin_[origin].lock()) return known;
  std::erase_if(by_origin_, [](const auto& entry) { return entry.second.expired(); });
  auto endpoint = std::make_shared<Endpoint>(origin, options_, clock_, [this](Endpoint::State now, MonoTime again_at) {
    if (now == Endpoint::State::open) ++trips_;
    on_change_(now, again_at);
  });
  by_origin_[origin] = endpoint;
  return endpoint;
}

int Endpoints::not_closed() const {
  std::lock_guard lock(mutex_);
  int n = 0;
  for (const auto& [origin, held] : by_origin_) {
    const auto endpoint = held.lock();
    n += endpoint && endpoint->state() != Endpoint::State::closed;
  }
  return n;
}

}  // namespace tocsin

#include "admission/flow_control.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/assert.h"

namespace tocsin {
namespace {

// Between two refills of a bucket: twenty claims a second keep a rate even enough.
constexpr Duration kRefill = std::chrono::milliseconds(50);
constexpr Duration kWishLasts = std::chrono::minutes(1);      // a consumer that wants long leases asks again
constexpr Duration kLongestRefill = std::chrono::seconds(1);  // the node's part of the rate may grow

constexpr Limit kRates[] = {Limit::rate, Limit::catch_up};

std::size_t at(Limit limit) { return static_cast<std::size_t>(limit); }

bool is_used_by(Limit limit, Pace pace) {
  return limit == Limit::rate || (limit == Limit::catch_up && pace == Pace::catch_up);
}

// Whether the type has this rate, and its starts at this pace take tokens of it.
bool bounds(Limit limit, const BizType& type, Pace pace) { return rate_of(type, limit) > 0 && is_used_by(limit, pace); }

}  // namespace

FlowControl::Grant FlowControl::grant_of(const Flow& flow, const BizType& type, Limit limit) const {
  if (is_shared_) return flow.grants[at(limit)];
  const int all = permits_of(type, limit);
  return {all, MonoTime::max(), Duration::max(), all, static_cast<int>(flow.used), all};
}

// How many more jobs may run under the permits of max_running.
std::size_t FlowControl::permits(const Flow& flow, const BizType& type, Duration lease, MonoTime now) const {
  if (type.is_instant() || !type.max_running) return std::numeric_limits<std::size_t>::max();
  const auto rest = [](std::size_t most, std::size_t used) { return most - std::min(most, used); };
  const Grant grant = grant_of(flow, type, Limit::running);
  // A lease longer than the one that the store knows of could outlive the permit.
  const bool holds = now < grant.until && lease <= grant.lease;
  return rest(holds ? static_cast<std::size_t>(std::max(grant.n, 0)) : 0, flow.used);
}

double FlowControl::part_of_rate(const Flow& flow, const BizType& type, Limit limit) const {
  return rate_of(type, limit) * grant_of(flow, type, limit).n / kWholeRate;
}

double FlowControl::tokens(Flow& flow, const BizType& type, Limit limit, MonoTime now) {
  const Grant grant = grant_of(flow, type, limit);
  const double tokens = flow.buckets[at(limit)].fill(part_of_rate(flow, type, limit), grant.until, now);
  return now < grant.until && grant.n > 0 ? tokens : 0;
}

void FlowControl::take_tokens(Flow& flow, const BizType& type, Pace pace, MonoTime now, Taken& taken) {
  for (const Limit limit : kRates) {
    if (!bounds(limit, type, pace)) continue;
    const auto whole = static_cast<std::size_t>(tokens(flow, type, limit, now));
    if (whole >= taken.n) continue;
    taken.n = whole;
    const bool is_granted = now < grant_of(flow, type, limit).until;
    const double per_s = is_granted ? part_of_rate(flow, type, limit) : 0;
    const Duration wait = flow.buckets[at(limit)].until_next(per_s);
    taken.again = std::min(taken.again, now + std::clamp<Duration>(wait, kRefill, kLongestRefill));
  }
  for (const Limit limit : kRates)
    if (bounds(limit, type, pace)) flow.buckets[at(limit)].take(taken.n);
}

FlowControl::Taken FlowControl::take(const BizType& type, std::size_t want, Pace pace, MonoTime now,
                                     std::optional<Duration> lease, std::size_t waiting) {
  Taken taken{want};
  const Duration length = std::max(type.ttr, lease.value_or(type.ttr));
  MutexLock lock(mutex_);
  Flow& flow = flows_[type.type_id];
  if (length > type.ttr) {
    const bool is_old = now - flow.wanted_at > kWishLasts;
    flow.wanted_lease = is_old ? length : std::max(flow.wanted_lease, length);
    flow.wanted_at = now;
  }
  taken.n = std::min(taken.n, permits(flow, type, length, now));
  const std::size_t slots = type.is_instant() ? 0 : pools_.take(type, taken.n, waiting);
  if (!type.is_instant()) taken.n = slots;
  if (taken.n < want) {
    flow.is_awaited = true;
    // Another engine may hold them and put them back without a notification.
    if (is_shared_by_engines()) taken.again = now + kRefill;
  }
  take_tokens(flow, type, pace, now, taken);
  if (type.is_instant()) return taken;
  flow.used += taken.n;
  pools_.put_back(type.type_id, slots - taken.n);  // slots that the rate did not admit
  return taken;
}

void FlowControl::put_back(TypeId type, std::size_t n, Pace pace, bool is_instant) {
  MutexLock lock(mutex_);
  Flow& flow = flows_[type];
  for (const Limit limit : kRates)
    if (is_used_by(limit, pace)) flow.buckets[at(limit)].put_back(n);
  if (is_instant) return;
  TOCSIN_ASSERT(flow.used >= n);
  flow.used -= n;
  pools_.put_back(type, n);
}

void FlowControl::return_all(TypeId type, std::size_t n) {
  if (n == 0) return;
  bool is_awaited = false;
  {
    MutexLock lock(mutex_);
    is_awaited = pools_.release(type, n);
  }
  release_used(type, n, is_awaited);
}

void FlowControl::return_slot(TypeId type) {
  bool is_awaited = false;
  {
    MutexLock lock(mutex_);
    is_awaited = pools_.release(type, 1);
  }
  if (is_awaited) notify_capacity();
}

void FlowControl::release_used(TypeId type, std::size_t n, bool is_awaited) {
  Waker* renewer = nullptr;
  {
    MutexLock lock(mutex_);
    Flow& flow = flows_[type];
    TOCSIN_ASSERT(flow.used >= n);
    const Grant& grant = flow.grants[at(Limit::running)];
    is_awaited = std::exchange(flow.is_awaited, false) || is_awaited;
    // Another node waits for permits in use beyond this node's share.
    if (flow.used > static_cast<std::size_t>(grant.n) && grant.reserved > grant.n) renewer = renewer_;
    flow.used -= n;
  }
  if (renewer) renewer->wake();
  if (is_awaited) notify_capacity();
}

void FlowControl::hand_over(TypeId type) {
  bool is_awaited = false;
  {
    MutexLock lock(mutex_);
    Flow& flow = flows_[type];
    TOCSIN_ASSERT(flow.used > flow.leased);
    ++flow.leased;
    is_awaited = pools_.release(type, 1);
    is_awaited = std::exchange(flow.is_awaited, false) || is_awaited;
  }
  if (is_awaited) notify_capacity();
}

void FlowControl::end_lease(TypeId type) {
  {
    MutexLock lock(mutex_);
    TOCSIN_ASSERT(flows_[type].leased > 0);
    --flows_[type].leased;
  }
  release_used(type, 1, false);
}

void FlowControl::take_over(TypeId type) {
  MutexLock lock(mutex_);
  ++flows_[type].used;
  ++flows_[type].leased;
}

void FlowControl::notify_capacity() const {
  for (const auto& callback : on_capacity_) callback();
}

void FlowControl::begin_sharing(Waker* renewer) {
  MutexLock lock(mutex_);
  renewer_ = renewer;
  is_shared_ = true;
}

void FlowControl::grant(TypeId type, Limit limit, const Grant& grant, MonoTime now) {
  bool is_more = false;
  {
    MutexLock lock(mutex_);
    Flow& flow = flows_[type];
    Grant& mine = flow.grants[at(limit)];
    is_more = grant.n > mine.n || now >= mine.until || grant.lease > mine.lease;
    mine = grant;
  }
  if (is_more) notify_capacity();
}

int FlowControl::held(TypeId type, Limit limit) const {
  MutexLock lock(mutex_);
  const auto flow = flows_.find(type);
  if (flow == flows_.end()) return 0;
  const int n = flow->second.grants[at(limit)].n;
  return limit == Limit::running ? std::max(n, static_cast<int>(flow->second.used)) : n;
}

std::size_t FlowControl::used(TypeId type) const {
  MutexLock lock(mutex_);
  const auto flow = flows_.find(type);
  return flow == flows_.end() ? 0 : flow->second.used;
}

std::size_t FlowControl::in_pool(const StartPool& pool) const {
  MutexLock lock(mutex_);
  return pools_.used(pool);
}

bool FlowControl::has_free(const StartPool& pool) {
  MutexLock lock(mutex_);
  return pools_.has_free(pool);
}

Duration FlowControl::wanted_lease(TypeId type, MonoTime now) const {
  MutexLock lock(mutex_);
  const auto flow = flows_.find(type);
  if (flow == flows_.end() || now - flow->second.wanted_at > kWishLasts) return Duration(0);
  return flow->second.wanted_lease;
}

int FlowControl::measure_rate_use(const BizType& type, Limit limit, MonoTime now) {
  MutexLock lock(mutex_);
  Flow& flow = flows_[type.type_id];
  tokens(flow, type, limit, now);  // at the old part of the rate, before the renewer changes the part
  const double part = flow.buckets[at(limit)].measure_use(now) / std::max(rate_of(type, limit), 1e-9);
  return static_cast<int>(std::lround(std::clamp(part, 0.0, 1.0) * kWholeRate));
}

bool FlowControl::is_counted(TypeId type, MonoTime now) const {
  MutexLock lock(mutex_);
  if (!is_shared_) return true;
  const auto flow = flows_.find(type);
  return flow != flows_.end() && now < flow->second.grants[at(Limit::running)].until;
}

std::optional<FlowControl::Grant> FlowControl::granted(TypeId type, Limit limit, MonoTime now) const {
  MutexLock lock(mutex_);
  const auto flow = flows_.find(type);
  if (flow == flows_.end() || now >= flow->second.grants[at(limit)].until) return {};
  return flow->second.grants[at(limit)];
}

bool FlowControl::is_paced(const BizType& type, Pace pace, MonoTime now) {
  MutexLock lock(mutex_);
  Flow& flow = flows_[type.type_id];
  for (const Limit limit : kRates) {
    if (bounds(limit, type, pace) && tokens(flow, type, limit, now) < 1) return true;
  }
  return false;
}

}  // namespace tocsin

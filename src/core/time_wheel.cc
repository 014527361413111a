#include "core/time_wheel.h"

#include <algorithm>
#include <bit>

#include "base/assert.h"

namespace tocsin {
namespace {

constexpr std::size_t kBits = 64;

std::int64_t floor_div(std::int64_t a, std::int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

}  // namespace

TimeWheel::TimeWheel(Duration tick, Duration lookahead, std::size_t capacity, WallTime now)
    : tick_us_(tick.count()), capacity_(capacity) {
  TOCSIN_ASSERT(tick_us_ > 0 && lookahead >= tick && capacity < kNone);
  at_ = floor_div(now.time_since_epoch().count(), tick_us_);
  // Two ticks more than the lookahead: one for rounding up, one because the slot of the current tick is not reused.
  const auto slots =
      std::bit_ceil(std::max<std::size_t>(kBits, static_cast<std::size_t>(lookahead.count() / tick_us_) + 2));
  heads_.assign(slots, kNone);
  busy_.assign(slots / kBits, 0);
}

std::int64_t TimeWheel::tick_of(WallTime fire_at) const {
  const std::int64_t us = fire_at.time_since_epoch().count();
  return floor_div(us, tick_us_) + (us % tick_us_ != 0 ? 1 : 0);
}

WallTime TimeWheel::position() const { return WallTime(Duration(at_ * tick_us_)); }

bool TimeWheel::add(const Candidate& job) {
  if (size_ >= capacity_) return false;
  const std::int64_t tick = std::max(tick_of(job.fire_at), at_ + 1);
  if (tick - at_ >= static_cast<std::int64_t>(heads_.size())) return false;
  Index index = free_;
  if (index == kNone) {
    index = static_cast<Index>(nodes_.size());
    nodes_.emplace_back();
  } else {
    free_ = nodes_[index].next;
  }
  const std::size_t slot = slot_of(tick);
  nodes_[index] = {job, heads_[slot]};
  heads_[slot] = index;
  busy_[slot / kBits] |= std::uint64_t{1} << (slot % kBits);
  ++size_;
  return true;
}

void TimeWheel::take_slot(std::size_t slot, std::vector<Candidate>& out) {
  const std::size_t first = out.size();
  for (Index index = heads_[slot]; index != kNone;) {
    Node& node = nodes_[index];
    out.push_back(node.job);
    const Index next = node.next;
    node.next = free_;
    free_ = index;
    index = next;
    --size_;
  }
  std::reverse(out.begin() + static_cast<std::ptrdiff_t>(first), out.end());
  heads_[slot] = kNone;
  busy_[slot / kBits] &= ~(std::uint64_t{1} << (slot % kBits));
}

void TimeWheel::advance(WallTime now, std::vector<Candidate>& due) {
  const std::int64_t target = floor_div(now.time_since_epoch().count(), tick_us_);
  while (at_ < target) {
    const auto busy = next_busy_tick();
    if (!busy || *busy > target) {
      at_ = target;
      return;
    }
    at_ = *busy;
    take_slot(slot_of(at_), due);
  }
}

void TimeWheel::rewind(WallTime now, std::vector<Candidate>& dropped) {
  std::vector<Candidate> all;
  all.reserve(size_);
  for (std::size_t slot = 0; slot < heads_.size(); ++slot) {
    if (heads_[slot] != kNone) take_slot(slot, all);
  }
  at_ = floor_div(now.time_since_epoch().count(), tick_us_);
  for (const Candidate& job : all) {
    if (!add(job)) dropped.push_back(job);
  }
}

std::optional<std::int64_t> TimeWheel::next_busy_tick() const {
  if (size_ == 0) return {};
  const std::size_t slots = heads_.size();
  const std::size_t start = slot_of(at_ + 1);
  for (std::size_t step = 0; step < slots;) {
    const std::size_t slot = (start + step) & (slots - 1);
    const std::uint64_t word = busy_[slot / kBits] >> (slot % kBits);
    if (word != 0) {
      const auto found = step + static_cast<std::size_t>(std::countr_zero(word));
      return at_ + 1 + static_cast<std::int64_t>(found);
    }
    step += kBits - slot % kBits;
  }
  TOCSIN_ASSERT(false && "size_ > 0 but no slot is busy");
  return {};
}

std::optional<WallTime> TimeWheel::next() const {
  const auto tick = next_busy_tick();
  if (!tick) return {};
  return WallTime(Duration(*tick * tick_us_));
}

}  // namespace tocsin

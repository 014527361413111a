// TimeWheel: holds candidates (unclaimed jobs due soon) until they are due. A hashed timing wheel of one ring that
// covers the lookahead; later jobs stay in the database. The timekeeper (pipeline/timekeeper.h) of each engine owns
// one. Source: G. Varghese, T. Lauck, "Hashed and Hierarchical Timing Wheels" (1987), scheme 4: one revolution is the
// whole horizon, so no slot ever holds an entry of another round. An occupancy bitmap finds the next busy slot, so an
// idle wheel needs no ticking.
//
// Invariants: an entry never comes out before its fire_at; it comes out at the first advance() at or after the end of
// its tick; size() <= capacity. Reads no clock: every `now` is the database's clock, as estimated. Thread: owner only.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ports/job_store.h"

namespace tocsin {

class TimeWheel {
 public:
  // REQUIRES: tick > 0, lookahead >= tick, capacity < 2^32 - 1.
  TimeWheel(Duration tick, Duration lookahead, std::size_t capacity, WallTime now);

  // Adds a job. False: the wheel is full, or the job is due later than the wheel reaches, which is at least the
  // lookahead after position(). A job whose time has passed comes out a tick after position().
  bool add(const Candidate& job);

  // Appends every entry whose tick has ended by `now` to `due`, earliest tick first, and sets position(). Does nothing
  // if `now` is before position().
  void advance(WallTime now, std::vector<Candidate>& due);

  // Call after the database's clock was set back to `now`. Entries keep their fire_at; those that the wheel no longer
  // reaches are appended to `dropped`.
  void rewind(WallTime now, std::vector<Candidate>& dropped);

  // When advance() next has something to do; nullopt when empty.
  std::optional<WallTime> next() const;

  std::size_t size() const { return size_; }
  WallTime position() const;  // end of the last tick taken out; an entry added since may be older

 private:
  using Index = std::uint32_t;
  static constexpr Index kNone = UINT32_MAX;
  struct Node {
    Candidate job;
    Index next = kNone;
  };

  std::int64_t tick_of(WallTime fire_at) const;  // the tick at whose end it is due: rounded up
  std::size_t slot_of(std::int64_t tick) const { return static_cast<std::size_t>(tick) & (heads_.size() - 1); }
  void take_slot(std::size_t slot, std::vector<Candidate>& out);
  std::optional<std::int64_t> next_busy_tick() const;

  const std::int64_t tick_us_;
  const std::size_t capacity_;
  std::int64_t at_;                  // last tick that was processed
  std::vector<Index> heads_;         // a slot's list, newest first; a power of two of slots
  std::vector<std::uint64_t> busy_;  // one bit per slot
  std::vector<Node> nodes_;
  Index free_ = kNone;
  std::size_t size_ = 0;
};

}  // namespace tocsin

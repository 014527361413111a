// StartPool: bounds how many attempts of one or several types are claimed at once on this node: by the connections to
// an endpoint, by the share of worker threads, by the messages that a broker has not confirmed.
#pragma once

#include <cstddef>
#include <limits>
#include <string>

namespace tocsin {

// A pool has slots, and each attempt takes one. A job is claimed only when a slot is free; the slot is free again when
// the attempt ends. The threads that claim jobs count the slots in use; the pool says how many there are. A pool
// belongs to a handler (Handler::pool()). Types that share a pool, such as types with the same endpoint, share one
// object.
// Thread: any.
class StartPool {
 public:
  virtual ~StartPool() = default;

  // The number of slots: how many attempts can run at once, and some that wait in the handler, so that no connection or
  // thread is idle until the next claim. 0: no attempt may start now. May change at any time.
  virtual std::size_t capacity() const = 0;

  // How many attempts the pool can start per second; infinity: not known. If more jobs of a type are due than it starts
  // within the lookahead (5 s), the others stay in the table.
  virtual double starts_per_s() const { return std::numeric_limits<double>::infinity(); }

  // What it belongs to, as the subject of a message: "its endpoint http://shop:80".
  virtual std::string name() const { return "its handler"; }
};

}  // namespace tocsin

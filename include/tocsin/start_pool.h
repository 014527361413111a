// What bounds how many attempts of one or several types run at once on this node: the connections to an endpoint, the
// threads of a worker pool.
#pragma once

#include <cstddef>
#include <limits>

namespace tocsin {

// Types that share a pool share one object. A job is claimed only when the pool has a free slot for it; the slot is
// free again when the attempt ends.
// Thread: any.
class StartPool {
 public:
  virtual ~StartPool() = default;

  // Attempts that it has use for at once, those that wait inside for a moment included. 0: none may start now. May
  // change at any time; see HandlerKind::on_capacity_change.
  virtual std::size_t capacity() const = 0;

  // How many attempts a second end there, as far as is known.
  virtual double starts_per_s() const { return std::numeric_limits<double>::infinity(); }
};

}  // namespace tocsin

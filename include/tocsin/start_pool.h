// What bounds how many attempts of one or several types run at once on this node: the connections to an endpoint, the
// threads of a worker pool.
#pragma once

#include <cstddef>
#include <limits>
#include <string>

namespace tocsin {

// Types that share a pool share one object. A job is claimed only when the pool has a free slot for it; the slot is
// free again when the attempt ends.
// Thread: any.
class StartPool {
 public:
  virtual ~StartPool() = default;

  // How many attempts may be under way at once: those that run, and a few that wait so that no slot stands idle. 0:
  // none may start now. May change at any time.
  virtual std::size_t capacity() const = 0;

  // How many attempts the pool can start per second, as far as is known; infinity: not known.
  virtual double starts_per_s() const { return std::numeric_limits<double>::infinity(); }

  // What it belongs to, for messages: "its endpoint http://shop:80".
  virtual std::string name() const { return "its handler"; }
};

}  // namespace tocsin

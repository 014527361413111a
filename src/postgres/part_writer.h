// PartWriter: writes items that cannot all be written together, because other transactions hold the keys of some, or
// the database refuses some. PostgreSQL does not tell which, so a part that fails is repeated with half as many items,
// until the item that is the reason is alone and left out; behind it the parts grow again. A key costs one try if all
// around it are held, and the logarithm of their number if no other one is. Made for one call of a store. Thread: owner
// only.
#pragma once

#include <cstddef>
#include <functional>
#include <limits>

#include "tocsin/error.h"

namespace tocsin {

// How long a part waits for a held key: another session may commit meanwhile, and many parts may be tried one after the
// other.
inline constexpr const char* kKeyLockWait = "5ms";
// Such waits of a call that may wait as long as a session waits for a lock: 3 s in all.
inline constexpr int kMostKeyWaits = 600;

class PartWriter {
 public:
  using Write = std::function<Result<bool>(std::size_t begin, std::size_t size)>;
  using LeaveOut = std::function<void(std::size_t item, const Error& why)>;
  static constexpr int kAnyNumber = std::numeric_limits<int>::max();

  // `may_be_one`: whether one item may be the reason of an Error. `waits`: how many parts may meet a lock. `refusals`:
  // how many items may be refused one after the other; more are no fault of single items.
  PartWriter(bool (*may_be_one)(const Error&), int waits, int refusals)
      : may_be_one_(may_be_one), waits_(waits), refusals_(refusals) {}

  // Calls `write`, which tells whether it changed anything, for parts of `n` items, in their order, and `leave_out` for
  // each item that it leaves out. Returns how many items were written or left out before the waits or refusals of all
  // calls were used up. Error: see failure().
  Result<std::size_t> write(std::size_t n, const Write& write, const LeaveOut& leave_out);

  // The Error of a call that ends with this one: in doubt if a part has changed anything.
  Error failure(const Error& error) const;

 private:
  bool (*const may_be_one_)(const Error&);
  int waits_;
  const int refusals_;
  int refused_in_a_row_ = 0;
  bool has_changed_ = false;
};

}  // namespace tocsin

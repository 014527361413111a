// PartWriter: writes items that cannot all be written together, because other transactions hold the keys of some, or
// the database refuses some. PostgreSQL does not tell which, so a part that fails is repeated with half as many items,
// until the item that is the reason is alone and left out; behind it the parts grow again. A key costs one try if all
// around it are held, and the logarithm of their number if no other one is. Made for one call of a store. Thread: owner
// only.
#pragma once

#include <cstddef>
#include <functional>
#include <limits>
#include <optional>

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
  using Judge = bool (*)(const Error&);
  static constexpr int kAnyNumber = std::numeric_limits<int>::max();

  // `may_be_one`: whether one item may be the reason of an Error. `waits`: how many parts may meet a lock. `refusals`:
  // how many items may be left out one after the other for Errors that `counts` names; more are no fault of single
  // items.
  PartWriter(Judge may_be_one, int waits, int refusals, Judge counts = is_refusal)
      : may_be_one_(may_be_one), counts_(counts), waits_(waits), refusals_(refusals) {}

  // Calls `write`, which tells whether it changed anything, for parts of `n` items, in their order, and `leave_out` for
  // each item that it leaves out. Returns how many items were written or left out before the waits or refusals of all
  // calls were used up. Error: see failure().
  Result<std::size_t> write(std::size_t n, const Write& write, const LeaveOut& leave_out);

  // So many items were refused one after the other that write() tries no more.
  bool has_given_up() const { return refused_in_a_row_ >= refusals_; }
  // The Error of the last of them. REQUIRES: has_given_up().
  const Error& last_refusal() const { return *last_refusal_; }

  // The Error of a call that ends with this one: in doubt if a part has changed anything.
  Error failure(const Error& error) const;

 private:
  static bool is_refusal(const Error& error) { return !is_contention(error.code); }

  const Judge may_be_one_, counts_;
  int waits_;
  const int refusals_;
  int refused_in_a_row_ = 0;
  std::optional<Error> last_refusal_;
  bool has_changed_ = false;
};

}  // namespace tocsin

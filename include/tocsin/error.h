// How a broken environment is reported. An expected answer ("not found", "lost the claim") is a value, never an Error;
// a bug is TOCSIN_ASSERT.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace tocsin {

enum class ErrorCode {
  unavailable,  // did not happen: no connection, shutting down, time-out before the statement took effect. Retry.
  in_doubt,     // may have happened: the answer to a COMMIT was lost. Re-read before you say anything.
  conflict,     // did not happen: another transaction holds what it needs (lock, deadlock, unique key). Retry or tell
                // the caller.
  moved,        // did not happen: the shard does not live in this database, or is just moving away. Retry elsewhere.
  superseded,   // did not happen: another process drives this operation now. Stop.
  invalid,      // did not happen and never will: the input or the configuration is wrong.
};

// Whether the same call may succeed a moment later, here or where the shard lives then.
inline constexpr bool is_contention(ErrorCode code) { return code == ErrorCode::conflict || code == ErrorCode::moved; }

struct Error {
  ErrorCode code;
  std::string message;  // human-readable; one line, no secrets
  std::string field;    // the input field at fault, or empty
};

const char* to_string(ErrorCode code);

// The field of an error conflict that says: a lock was waited for, as long as the session allows.
inline constexpr const char* kLocked = "lock";

// The field of an error unavailable that says: the server is well, but the statement reached its time limit.
inline constexpr const char* kTooSlow = "statement";

// Either a T or an Error. Read value() only when ok().
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& value() & { return std::get<0>(state_); }
  const T& value() const& { return std::get<0>(state_); }
  T&& value() && { return std::get<0>(std::move(state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  const Error& error() const { return std::get<1>(state_); }

 private:
  std::variant<T, Error> state_;
};

struct Unit {};
using Status = Result<Unit>;

}  // namespace tocsin

// Errors as values: Result<T> is a T or an Error, whose code says whether the call took effect. An Error says why a
// call did not do its work: a failure of the environment, wrong input, or another party that holds or has taken over
// what the call needs. An expected answer ("not found", "lost the claim") is part of T; a bug ends the process
// (TOCSIN_ASSERT).
#pragma once

#include <string>
#include <utility>
#include <variant>

namespace tocsin {

enum class ErrorCode {
  unavailable,  // did not happen: no connection, shutting down, time-out before it took effect, or the server cannot
                // carry out this write now. Retry later.
  in_doubt,     // may have happened: the request (a write to the database, an HTTP request) was sent and its answer was
                // lost. Read the state before repeating or reporting.
  conflict,     // did not happen: something else holds what it needs: a lock, a unique key, every connection to a
                // webhook's endpoint, a node with an old shard map. Retry or tell the caller.
  moved,        // did not happen: the job's shard lives in another database, or is moving there. Retry in the database
                // that the new shard map names.
  superseded,   // did not happen: another process drives this move of a shard now. Stop.
  invalid,      // did not happen and never will: the input or the configuration is wrong.
};

// Whether the call lost to another party (conflict), or belongs to another database (moved), while the databases work.
inline constexpr bool is_contention(ErrorCode code) { return code == ErrorCode::conflict || code == ErrorCode::moved; }

struct Error {
  ErrorCode code;
  std::string message;  // human-readable; one line, no secrets
  std::string field;    // the input field at fault, or a mark such as kLocked that refines the code; else empty
};

const char* to_string(ErrorCode code);

// Error::field of a conflict: another transaction held a row or table lock for longer than the session waits.
inline constexpr const char* kLocked = "lock";

// Error::field of unavailable: the server answers, but has ended the statement: it reached its time limit, or an
// operator cancelled it.
inline constexpr const char* kTooSlow = "statement";

// Either a T or an Error. value(), * and -> when not ok(), and error() when ok(), throw std::bad_variant_access.
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

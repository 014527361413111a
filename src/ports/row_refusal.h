// Says of the Error of a store call that writes several rows whether one row may be the reason. Thread: any.
#pragma once

#include "tocsin/error.h"

namespace tocsin {

// Error::field of unavailable: the server answered that it cannot carry out a write now. One row may be the reason,
// such as a damaged page of an index, a trigger that fails, or a missing right on the table of a day. The row can be
// written once that is mended, so the caller keeps its outcome.
inline constexpr const char* kRefused = "row";

// Whether the database has answered: it refuses a row, or met a lock. False: it did not answer, or is down.
inline bool is_row_error(const Error& error) {
  return error.code == ErrorCode::invalid || error.code == ErrorCode::conflict || error.field == kRefused;
}

// Whether one row may be the reason, so that a call with fewer rows may succeed at once. A lock on the whole table is
// no such reason: a call for any row waits for it. (Locked rows are skipped.)
inline bool is_refused_row(const Error& error) { return is_row_error(error) && error.field != kLocked; }

// When so many rows are refused one after the other, each alone, what refuses them is not in the rows: a right on the
// table is missing, or a trigger refuses all.
inline constexpr int kMostRefusedInARow = 8;

// The Error of a row that is not tried any more, because so many before it were refused. `last`: the Error of the last
// of these. The row itself may be right, so it is never `invalid`.
inline Error untried(const Error& last) { return {ErrorCode::unavailable, last.message, kRefused}; }

}  // namespace tocsin

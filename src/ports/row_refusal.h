// What the Error of a store call for several rows says of its reason: whether one row may be it. Callers that write
// batches ask: the finisher, the claimers, the lease reaper, OutcomeRouter. Thread: any.
#pragma once

#include "tocsin/error.h"

namespace tocsin {

// Error::field of unavailable: the server answered a write that it cannot carry it out, perhaps because of one row,
// such as a damaged page of an index, a trigger that fails, or a missing right on the table of a day. The row may be
// written when that is mended, so its outcome is kept.
inline constexpr const char* kRefused = "row";

// Whether the database has answered that it refuses rows or met locks.
inline bool is_row_error(const Error& error) {
  return error.code == ErrorCode::invalid || error.code == ErrorCode::conflict || error.field == kRefused;
}

// Whether one row may be the reason, so that a call for fewer rows may succeed at once. The lock of a table is none: a
// call for any row waits for it. (Locked rows are skipped.)
inline bool is_refused_row(const Error& error) { return is_row_error(error) && error.field != kLocked; }

}  // namespace tocsin

// Cancels and changes of jobs: what callers ask for and what ClientStore (ports/client_store.h) answers.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tocsin/clock.h"
#include "tocsin/error.h"
#include "tocsin/job.h"

namespace tocsin {

// When a job is due: at an instant, or a duration after now by the database's clock.
struct When {
  std::optional<WallTime> at;
  std::optional<Duration> in;  // exactly one of `at` and `in` is given
  // The delay that the caller asked for, if `at` was computed from it. It replaces `at` in the idempotency fingerprint,
  // because `at` differs when the caller repeats the request.
  std::optional<Duration> asked_in{};
};

// Whether cancels wait for rows that other transactions hold locked.
enum class LockWait { none, some_seconds };

struct CancelReply {
  enum class Kind {
    cancelled,
    running,
    finished,
    not_found,
    locked,    // nothing was changed: another transaction holds the row, or its shard is moving; ask again
    refused,   // nothing was changed: the database refuses to write the row (ports/row_refusal.h), or was not asked
               // because it refuses many; ask again. Not in ChangeBatchReply
    in_doubt,  // the job may have been cancelled. No store answers this: its call ends with an Error
  };
  Kind kind = Kind::not_found;
  // The id asked for. If that is an alias id (the id of a repeated SQL create whose idempotency key another job had):
  // the id of the other job.
  JobId job_id = 0;
  std::optional<Job> job;  // the job as it is now; empty for not_found, locked, refused and in_doubt
};

// Answer to a change of a pending job, and to retry.
struct ChangeReply {
  // Any kind except `changed`: nothing was changed, because the job is in that state. `locked`: another transaction
  // holds its row, its key or its table, its shard is moving, or the removal of its type is undecided; ask again.
  // `pending` and `type_removed` are only answers to retry.
  enum class Kind { changed, pending, running, finished, not_found, locked, type_removed };
  Kind kind = Kind::not_found;
  std::optional<Job> job;  // the job as it is now; empty for not_found, and sometimes for locked
};

// A new deadline for a pending job. Without `when` the job is due now, and its action_time stays.
struct PendingChange {
  JobId job = 0;
  std::optional<When> when;
};

// The pending jobs of a business key, of one type or of every type.
struct KeyCancel {
  std::string biz_id;
  std::optional<TypeId> type;
};

// The jobs of a key by their state at the cancel. The lists are sorted by id, except `finished`: newest first, jobs of
// the type among the newest ClientStore::kMostNamed ended jobs of the key.
struct KeyCancelReply {
  std::vector<JobId> cancelled, running, finished;
  std::vector<JobId> locked;  // pending and unchanged: another transaction holds the row, or its shard is moving
  bool is_too_many =
      false;  // more than ClientStore::kMostOfOneKeyTogether are live, none was cancelled: use cancel_all
  bool has_more_finished = false;  // more jobs of the key have ended than were looked at
};

struct CancelAllReply {
  std::vector<CancelReply> jobs;
  bool has_more = false;           // live jobs of the key may be left: call again
  bool has_more_finished = false;  // more jobs of the key have ended than were looked at
};

// Cancels and changes, often of many callers, that are written together.
struct ChangeBatch {
  bool is_retry = false;  // repeats requests that were answered `locked`: waits for no lock
  std::vector<JobId> cancels;
  std::vector<KeyCancel> key_cancels;
  std::vector<PendingChange> changes;
};
// One reply per request, in the order of the batch. Error: nothing was changed for the request; the database refuses to
// write a row of it, or was not asked because it refuses many (ports/row_refusal.h).
struct ChangeBatchReply {
  std::vector<Result<CancelReply>> cancels;
  std::vector<Result<KeyCancelReply>> key_cancels;
  std::vector<Result<ChangeReply>> changes;
};

}  // namespace tocsin

// Cancels and changes of jobs: what callers ask for and what ClientStore (ports/client_store.h) answers.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tocsin/clock.h"
#include "tocsin/job.h"

namespace tocsin {

// When a job is due: at an instant, or a duration after the database's now.
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
    locked,  // nothing was changed: another transaction holds the row, or its shard is moving; ask again
  };
  Kind kind = Kind::not_found;
  JobId job_id = 0;        // that asked for, or that which the job got because two jobs had its id
  std::optional<Job> job;  // as it is now; not for not_found and locked
};

// Answer to a change of a pending job, and to retry.
struct ChangeReply {
  // All but `changed`: the job was left unchanged because it is in that state. `locked`: another transaction holds its
  // row, or its shard is moving; ask again. `pending` and `type_removed`: only from retry.
  enum class Kind { changed, pending, running, finished, not_found, locked, type_removed };
  Kind kind = Kind::not_found;
  std::optional<Job> job;  // as it is now; not for not_found, and not always for locked
};

// A new deadline for a pending job; without `when` it is due now and its action_time stays.
struct PendingChange {
  JobId job = 0;
  std::optional<When> when;
};

// The pending jobs of a business key, of one type or of every type.
struct KeyCancel {
  std::string biz_id;
  std::optional<TypeId> type;
};

// The jobs of a key by their state at the cancel. The lists are sorted by id; `finished` has the newest first: those of
// the type among the newest ClientStore::kMostNamed of any type.
struct KeyCancelReply {
  std::vector<JobId> cancelled, running, finished;
  std::vector<JobId> locked;  // pending and unchanged: another transaction holds them, or they move; ask again
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
// One reply per request, in the order of the batch.
struct ChangeBatchReply {
  std::vector<CancelReply> cancels;
  std::vector<KeyCancelReply> key_cancels;
  std::vector<ChangeReply> changes;
};

}  // namespace tocsin

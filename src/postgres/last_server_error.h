// LastServerError: keeps those fields of the latest error of a connection that libpqxx does not expose: the SQLSTATE,
// the names of table and constraint, and the key of a unique violation. They are the same in every language, while the
// server translates its messages (lc_messages). It also notes the warning that a commit did not wait for its
// synchronous standby. Each Session has one. Thread: that of the session.
#pragma once

#include <optional>
#include <string>

#include "tocsin/job.h"

struct pg_conn;  // PGconn and PGresult of libpq
struct pg_result;

namespace tocsin {

class LastServerError {
 public:
  LastServerError() = default;
  LastServerError(const LastServerError&) = delete;
  LastServerError& operator=(const LastServerError&) = delete;

  // From now on holds the errors of this connection. REQUIRES: this object outlives the connection; results may
  // outlive both.
  void watch(pg_conn* connection);
  // Called by libpq with every result of status PGRES_FATAL_ERROR.
  void note(const pg_result* result);
  void note_cancelled_wait() { has_cancelled_wait_ = true; }

  // SQLSTATE of the latest failed result; later successes and watch() keep it. Empty: none has failed yet, or the
  // latest one has no SQLSTATE because libpq lost the connection. May be of class 08 although the connection is alive:
  // the server itself could not reach another one. libpqxx throws broken_connection in both cases.
  const std::string& sql_state() const { return sql_state_; }
  // Whether a row fits no partition. Three cases have 23514: then the table alone is named; a row that breaks a CHECK
  // names table and constraint; a function that RAISEs check_violation names neither.
  bool has_no_partition() const { return sql_state_ == "23514" && !table_.empty() && constraint_.empty(); }
  // Whether the wait of a commit for its synchronous standby was cancelled (pg_cancel_backend) since
  // forget_cancelled_wait(). The server reports the commit's success, with a warning.
  bool has_cancelled_wait() const { return has_cancelled_wait_; }
  void forget_cancelled_wait() { has_cancelled_wait_ = false; }
  // The error is a unique violation of an index on job_id alone: the id, and whether the stored row that has it is a
  // finished job. nullopt: another error.
  struct DuplicateId {
    JobId job_id = 0;
    bool is_in_history = false;
  };
  std::optional<DuplicateId> duplicate_id() const;

 private:
  std::string sql_state_, schema_, table_, constraint_;
  bool has_cancelled_wait_ = false;
  std::string detail_;  // translated, but for the key: "Key (job_id)=(4711) already exists."
};

}  // namespace tocsin

// LastRefusal: keeps fields of the latest error result of a connection that libpqxx does not expose: the SQLSTATE, and
// whether a table and a constraint are named. These are the same in every language, while the server translates its
// messages (lc_messages). Thread: that of the connection.
#pragma once

#include <string>

struct pg_conn;  // PGconn and PGresult of libpq
struct pg_result;

namespace tocsin {

class LastRefusal {
 public:
  LastRefusal() = default;
  LastRefusal(const LastRefusal&) = delete;
  LastRefusal& operator=(const LastRefusal&) = delete;

  // From now on holds the errors of this connection. REQUIRES: this object outlives the connection; results may
  // outlive both.
  void watch(pg_conn* connection);
  // Called by libpq with every result that is an error.
  void note(const pg_result* result);

  // SQLSTATE of the latest failed result; later successes and watch() keep it. Empty: none has failed yet, or the
  // latest one has no SQLSTATE because libpq lost the connection. May be of class 08 although the connection is alive:
  // the server itself could not reach another one. libpqxx throws broken_connection in both cases.
  const std::string& sql_state() const { return sql_state_; }
  // Whether a row fits no partition. Three cases have 23514: then the table alone is named; a row that breaks a CHECK
  // names table and constraint; a function that RAISEs check_violation names neither.
  bool has_no_partition() const { return sql_state_ == "23514" && names_table_ && !names_constraint_; }

 private:
  std::string sql_state_;
  bool names_table_ = false;
  bool names_constraint_ = false;
};

}  // namespace tocsin

// LastRefusal: the fields of the server's last error on a connection that libpqxx does not pass on. Codes and names of
// things are the same in every language, messages are not: the server translates them (lc_messages). Thread: that of
// the connection.
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

  // From now on holds the errors of this connection. The object must outlive the connection, not its results.
  void watch(pg_conn* connection);
  // Called by libpq with every result that is an error.
  void note(const pg_result* result);

  // Empty: there was none. Of class 08 when a server that still answers says that it could not reach another one;
  // libpqxx throws broken_connection then.
  const std::string& sql_state() const { return sql_state_; }
  // PostgreSQL names the table when a row fits no partition, and the constraint too when a row breaks one. Functions
  // that RAISE check_violation name neither.
  bool has_no_partition() const { return sql_state_ == "23514" && names_table_ && !names_constraint_; }

 private:
  std::string sql_state_;
  bool names_table_ = false;
  bool names_constraint_ = false;
};

}  // namespace tocsin

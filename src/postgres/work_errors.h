// Exceptions that the `work` of a Session throws (session.h), to end its call with an Error of its own.
#pragma once

#include <pqxx/pqxx>
#include <string>

namespace tocsin {

// Rolls the transaction back, and the call ends with Error invalid.
class Refused : public pqxx::data_exception {
 public:
  explicit Refused(const std::string& why) : pqxx::data_exception(why, "", "22000") {}
};

// As Refused, but Error superseded: another process has taken the work over.
class Superseded : public pqxx::sql_error {
 public:
  static constexpr const char* kState = "TC002";
  explicit Superseded(const std::string& why) : pqxx::sql_error(why, "", kState) {}
};

// As Refused, but Error conflict: another transaction is in the way, and a repetition may succeed.
class Busy : public pqxx::sql_error {
 public:
  explicit Busy(const std::string& why) : pqxx::sql_error(why, "", "40001") {}
};

}  // namespace tocsin

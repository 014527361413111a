// A database of this program's own, with settings that break careless SQL; gone when the program ends.
#pragma once

#include <string>

namespace tocsin {

// Thread: owner only.
class PostgresDatabase {
 public:
  static constexpr int kShards = 4;

  // Creates it on the server that TOCSIN_TEST_DATABASE names (the URL of a superuser) and migrates it. Throws
  // std::runtime_error.
  PostgresDatabase();
  ~PostgresDatabase();
  PostgresDatabase(const PostgresDatabase&) = delete;
  PostgresDatabase& operator=(const PostgresDatabase&) = delete;

  // Without jobs and types again: a tenth of the time that another database would take.
  void empty();
  void lose_jobs();  // with all that is known of them

  const std::string& url() const { return url_; }

 private:
  std::string name_;
  std::string url_;
};

}  // namespace tocsin

// A pooler in front of a PostgreSQL server, as Debian ships it; gone at the end.
#pragma once

#include <memory>
#include <string>

#include "support/process.h"

namespace tocsin {

// Thread: owner only, the main thread.
class Pgbouncer {
 public:
  // Of the server of `url`. It shares few sessions among all its clients, and gives one away for a transaction at a
  // time. `further`: lines of its configuration. Throws std::runtime_error with its log when it does not start.
  explicit Pgbouncer(const std::string& url, const std::string& further = "");

  // The database of `url` through it.
  const std::string& url() const { return url_; }

 private:
  std::string url_;
  std::unique_ptr<Process> process_;
};

}  // namespace tocsin

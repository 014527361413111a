// Pgbouncer: a pooler (shares sessions between transactions) in front of a PostgreSQL server; the Debian package. It
// ends with the object.
#pragma once

#include <memory>
#include <string>

#include "support/process.h"

namespace tocsin {

// Thread: owner only, the main thread.
class Pgbouncer {
 public:
  // Connects to the server of `url`. Six server sessions per database serve all clients, each for one transaction at a
  // time. `further`: lines of its configuration. Throws std::runtime_error with its log if it does not start.
  explicit Pgbouncer(const std::string& url, const std::string& further = "");

  // The database of the constructor's `url`, through the pooler.
  const std::string& url() const { return url_; }

 private:
  std::string url_;
  std::unique_ptr<Process> process_;
};

}  // namespace tocsin

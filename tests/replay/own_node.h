// A node of the replay's own: a database that is dropped afterwards, a free port, and a process that is asked to drain
// at the end.
#pragma once

#include <string>

#include "bench_core/process.h"

namespace tocsin::replay {

// Thread: owner only, and started before any other thread: it forks.
class OwnNode {
 public:
  // `binary` is any program that understands `serve`; `database` is the URL of a server's maintenance database, whose
  // user may create databases. Throws std::runtime_error.
  OwnNode(const std::string& binary, const std::string& database);
  ~OwnNode();
  OwnNode(const OwnNode&) = delete;
  OwnNode& operator=(const OwnNode&) = delete;

  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }

  // SIGTERM, then waits for its end, half a minute at most. Whether it drained and ended with 0.
  bool stop();

 private:
  const std::string maintenance_;
  const std::string name_;
  const int port_;
  bench::Process process_;
};

}  // namespace tocsin::replay

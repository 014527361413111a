// A whole node: the program, as an operator starts it.
#pragma once

#include <string>
#include <vector>

#include "support/process.h"
#include "support/rest.h"

namespace tocsin {

// Thread: owner only, the main thread.
class NodeProcess {
 public:
  // Serves `database` on a free port, unless the options have a --listen; returns when it is ready. Throws
  // std::runtime_error with its log when it does not get there.
  explicit NodeProcess(const std::string& database, std::vector<std::string> options = {},
                       const std::string& token = "");

  Rest& rest() { return rest_; }
  int port() const { return port_; }
  bool is_ready() { return Rest(port_).get("/readyz").status == 200; }
  Process& process() { return process_; }
  std::string log() const { return process_.err(); }

  // SIGTERM; its exit code, -1 when it did not end.
  int stop();
  // As a crash of the machine would.
  void kill();

 private:
  int find_port();

  Process process_;
  int port_;
  Rest rest_;
};

}  // namespace tocsin

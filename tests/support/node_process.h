// NodeProcess: a whole node, the program `tocsin serve`, started as an operator starts it. Used by tests that need real
// processes.
#pragma once

#include <string>
#include <vector>

#include "support/process.h"
#include "support/rest.h"

namespace tocsin {

// Thread: owner only, the main thread.
class NodeProcess {
 public:
  // Serves the database at this URL on a free port, unless the options have --listen. Returns when the node is ready.
  // `token`: the REST token that rest() sends; empty: none. Throws std::runtime_error with the node's log if it does
  // not become ready.
  explicit NodeProcess(const std::string& database, std::vector<std::string> options = {},
                       const std::string& token = "");

  Rest& rest() { return rest_; }
  int port() const { return port_; }
  bool is_ready() { return Rest(port_).get("/readyz").status == 200; }
  Process& process() { return process_; }
  std::string log() const { return process_.err(); }

  // Sends SIGTERM. Returns the exit code; -1: it did not end.
  int stop();
  // Sends SIGKILL, as if the machine crashed.
  void kill();

 private:
  int find_port();

  Process process_;
  int port_;
  Rest rest_;
};

}  // namespace tocsin

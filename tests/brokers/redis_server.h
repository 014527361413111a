// A redis-server of the tests' own.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "support/process.h"

namespace tocsin {

// What it has answered is on disk. Gone at the end. Throws std::runtime_error when it does not start.
// Thread: owner only, the main thread.
class RedisServerProcess {
 public:
  RedisServerProcess();
  ~RedisServerProcess();
  RedisServerProcess(const RedisServerProcess&) = delete;
  RedisServerProcess& operator=(const RedisServerProcess&) = delete;

  // Returns when it takes connections.
  void start();
  void kill();

  std::string url(const std::string& password = "sesame") const {
    return "redis://:" + password + "@127.0.0.1:" + std::to_string(port_);
  }
  // All strings of the answer, one after the other; empty when there is none.
  std::vector<std::string> ask(const std::vector<std::string>& words) const;

 private:
  int port_;
  std::string folder_;
  std::unique_ptr<Process> process_;
};

}  // namespace tocsin

// Programs that tests start and stop.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace tocsin {

inline constexpr std::chrono::seconds kPatience{60};  // how long tests wait for what should take moments

// Asks again and again until `condition` holds. False: it did not within `patience`.
bool eventually(const std::function<bool()>& condition, std::chrono::milliseconds patience = kPatience);

// An environment variable set by the test runner. Throws std::runtime_error when it is not set.
std::string required_env(const char* name);

// A running program; killed at the latest when this ends, or the tests do.
// Thread: owner only, the main thread.
class Process {
 public:
  // Standard output and errors go to files in a fresh folder below `TOCSIN_TEST_DIR`.
  explicit Process(const std::vector<std::string>& arguments);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }
  void signal(int number) const;
  bool is_running();
  // Its exit code, or 128 + the signal that ended it. nullopt: it still runs.
  std::optional<int> wait(std::chrono::milliseconds patience = kPatience);

  std::string out() const;
  std::string err() const;

 private:
  std::string folder_;
  pid_t pid_ = -1;
  std::optional<int> exit_code_;
};

struct Ran {
  int exit_code = -1;
  std::string out, err;
};

// Runs a program to its end.
Ran run(const std::vector<std::string>& arguments);

// Runs `tocsin` with these arguments to its end.
Ran run_tocsin(std::vector<std::string> arguments);

}  // namespace tocsin

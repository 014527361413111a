// Process: a program that a test starts and stops. eventually(): waits for a condition.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace tocsin {

inline constexpr std::chrono::seconds kPatience{60};  // tests wait at most this long

// Checks `condition` every few milliseconds until it holds. False: it did not hold within `patience`.
bool eventually(const std::function<bool()>& condition, std::chrono::milliseconds patience = kPatience);

// The value of an environment variable that scripts/test sets. Throws std::runtime_error if it is not set.
std::string required_env(const char* name);

// It is killed (SIGKILL) when this object or the test program ends. Thread: owner only, the main thread.
class Process {
 public:
  // `arguments`: the program's path, then its arguments. Its output and errors go to files in a new folder below
  // TOCSIN_TEST_DIR.
  explicit Process(const std::vector<std::string>& arguments);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }
  void signal(int number) const;
  bool is_running();
  // The exit code, or 128 + the signal that ended the program. nullopt: it still runs after `patience`.
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

// Runs a program to its end. `arguments`: as for Process.
Ran run(const std::vector<std::string>& arguments);

// Runs `tocsin` with these arguments to its end.
Ran run_tocsin(std::vector<std::string> arguments);

}  // namespace tocsin

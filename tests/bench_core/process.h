// Programs that the benchmark starts: a node, and the script that runs PostgreSQL.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <string>
#include <utility>
#include <vector>

namespace tocsin::bench {

using Environment = std::vector<std::pair<std::string, std::string>>;

// Runs a command to its end. What it printed, without the last newline. Throws Failure when it fails.
std::string output_of(const std::vector<std::string>& command, const Environment& environment = {});

// A program that runs beside this one, and never outlives it.
// Thread: owner only, and that is the main thread: the kernel ends the program with the thread that started it.
class Process {
 public:
  explicit Process(const std::vector<std::string>& command);
  ~Process();  // stops it
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }
  bool is_running();
  // SIGTERM, then waits for its end, and SIGKILL after half a minute. Throws Failure unless it ended with 0.
  void stop();

  // Ends the one that runs now, if any, at once.
  // Thread: any.
  static void kill_running();

  // Resident memory now, and the most it ever was, in MB.
  double resident_mb() const { return status_mb("VmRSS:"); }
  double peak_mb() const { return status_mb("VmHWM:"); }

 private:
  double status_mb(const std::string& key) const;

  void ended();

  static inline std::atomic<pid_t> running_ = -1;
  pid_t pid_ = -1;
  int exit_status_ = 0;
};

}  // namespace tocsin::bench

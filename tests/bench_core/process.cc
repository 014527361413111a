#include "bench_core/process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <iostream>

#include "cli/pause.h"
#include "cli/rest_client.h"

namespace tocsin::bench {
namespace {

constexpr auto kPoll = std::chrono::milliseconds(20);
constexpr int kPatience = 1500;  // polls: 30 s

// All that runs between fork and exec is safe there: what needs memory is made before.
pid_t start(const std::vector<std::string>& command, const Environment& environment, int output, bool ends_with_us) {
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  for (const auto& [name, value] : environment) ::setenv(name.c_str(), value.c_str(), 1);
  sigset_t no_signals;
  sigemptyset(&no_signals);
  const pid_t parent = ::getpid(), child = ::fork();
  if (child < 0) throw Failure("cannot start " + command.front());
  if (child > 0) return child;
  ::sigprocmask(SIG_SETMASK, &no_signals, nullptr);
  if (ends_with_us) {
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (::getppid() != parent) ::_exit(1);
  }
  if (output >= 0) ::dup2(output, STDOUT_FILENO);
  ::execvp(arguments.front(), arguments.data());
  ::_exit(127);
}

int wait_for(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

bool is_success(int status) { return WIFEXITED(status) && WEXITSTATUS(status) == 0; }

}  // namespace

std::string output_of(const std::vector<std::string>& command, const Environment& environment) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw Failure("no pipe");
  const pid_t pid = start(command, environment, ends[1], false);
  ::close(ends[1]);
  std::string output;
  char part[4096];
  for (ssize_t n; (n = ::read(ends[0], part, sizeof part)) != 0;) {
    if (n > 0) output.append(part, static_cast<std::size_t>(n));
    if (n < 0 && errno != EINTR) break;
  }
  ::close(ends[0]);
  if (!is_success(wait_for(pid))) throw Failure(command.front() + " failed");
  while (!output.empty() && output.back() == '\n') output.pop_back();
  return output;
}

Process::Process(const std::vector<std::string>& command) : pid_(start(command, {}, STDERR_FILENO, true)) {
  running_ = pid_;
}

void Process::ended() { running_ = pid_ = -1; }

void Process::kill_running() {
  if (const pid_t pid = running_; pid > 0) ::kill(pid, SIGKILL);
}

Process::~Process() {
  try {
    stop();
  } catch (const Failure& failure) {
    std::cerr << "note: " << failure.what() << '\n';
  }
}

bool Process::is_running() {
  if (pid_ > 0 && ::waitpid(pid_, &exit_status_, WNOHANG) == pid_) ended();
  return pid_ > 0;
}

void Process::stop() {
  if (!is_running()) return;
  ::kill(pid_, SIGTERM);
  for (int i = 0; i < kPatience && is_running(); ++i) pause_for(kPoll);
  if (is_running()) {
    ::kill(pid_, SIGKILL);
    exit_status_ = wait_for(pid_);
    ended();
  }
  if (!is_success(exit_status_)) throw Failure("the node did not drain and end with 0");
}

double Process::status_mb(const std::string& key) const {
  std::ifstream file("/proc/" + std::to_string(pid_) + "/status");
  double kilobytes = 0;
  for (std::string word; file >> word;) {
    if (word == key && file >> kilobytes) return kilobytes / 1024;
  }
  throw Failure("the node has ended");
}

}  // namespace tocsin::bench

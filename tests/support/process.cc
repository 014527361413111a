#include "support/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace tocsin {
namespace {

using ProcessTimer = std::chrono::steady_clock;

constexpr int kPauseMs = 5;  // between two questions

std::string read(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// Between fork and exec: only what a child of a threaded process may call.
[[noreturn]] void become(char* const* arguments, int out, int err, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(126);
  ::dup2(out, STDOUT_FILENO);
  ::dup2(err, STDERR_FILENO);
  ::execv(arguments[0], arguments);
  ::_exit(127);
}

}  // namespace

bool eventually(const std::function<bool()>& condition, std::chrono::milliseconds patience) {
  const auto deadline = ProcessTimer::now() + patience;
  while (!condition()) {
    if (ProcessTimer::now() >= deadline) return false;
    ::poll(nullptr, 0, kPauseMs);
  }
  return true;
}

std::string required_env(const char* name) {
  const char* value = std::getenv(name);
  if (!value || !*value) throw std::runtime_error(std::string(name) + " is not set: scripts/test sets it");
  return value;
}

Process::Process(const std::vector<std::string>& arguments) {
  std::string pattern = required_env("TOCSIN_TEST_DIR") + "/process.XXXXXX";
  if (!::mkdtemp(pattern.data())) throw std::runtime_error("cannot make a folder like " + pattern);
  folder_ = pattern;
  const int out = ::open((folder_ + "/out").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  const int err = ::open((folder_ + "/err").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  std::vector<char*> pointers;
  for (const std::string& argument : arguments) pointers.push_back(const_cast<char*>(argument.c_str()));
  pointers.push_back(nullptr);
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ == 0) become(pointers.data(), out, err, parent);
  ::close(out);
  ::close(err);
  if (pid_ < 0) throw std::runtime_error("cannot fork");
}

Process::~Process() {
  if (is_running()) {
    signal(SIGKILL);
    wait();
  }
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

void Process::signal(int number) const {
  if (!exit_code_) ::kill(pid_, number);
}

bool Process::is_running() { return !wait(std::chrono::milliseconds(0)); }

std::optional<int> Process::wait(std::chrono::milliseconds patience) {
  eventually(
      [this] {
        int status = 0;
        if (!exit_code_ && ::waitpid(pid_, &status, WNOHANG) == pid_) {
          exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        }
        return exit_code_.has_value();
      },
      patience);
  return exit_code_;
}

std::string Process::out() const { return read(folder_ + "/out"); }
std::string Process::err() const { return read(folder_ + "/err"); }

Ran run(const std::vector<std::string>& arguments) {
  Process process(arguments);
  const auto exit_code = process.wait();
  return {exit_code.value_or(-1), process.out(), process.err()};
}

Ran run_tocsin(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), required_env("TOCSIN_BINARY"));
  return run(arguments);
}

}  // namespace tocsin

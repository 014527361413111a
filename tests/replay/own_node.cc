#include "replay/own_node.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <iostream>
#include <stdexcept>

#include "support/server.h"

namespace tocsin::replay {

OwnNode::OwnNode(const std::string& binary, const std::string& database)
    : maintenance_(database), name_("tocsin_replay_" + std::to_string(::getpid())), port_(free_port()) {
  execute(maintenance_, "CREATE DATABASE " + name_ + " TEMPLATE template0 ENCODING 'UTF8'");
  const std::string own = url_of(maintenance_, name_), listen = "127.0.0.1:" + std::to_string(port_);
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ < 0) throw std::runtime_error("cannot fork");
  if (pid_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);  // never outlive a killed replay
    if (::getppid() != parent) ::_exit(1);
    ::execl(binary.c_str(), binary.c_str(), "serve", "--migrate", "--database", own.c_str(), "--listen", listen.c_str(),
            "--log-level", "warn", nullptr);
    ::_exit(127);
  }
}

OwnNode::~OwnNode() {
  if (pid_ > 0) stop();
  try {
    execute(maintenance_, "DROP DATABASE " + name_ + " WITH (FORCE)");
  } catch (const std::exception& error) {
    std::cerr << "left behind: database " << name_ << ": " << error.what() << '\n';
  }
}

bool OwnNode::stop() {
  ::kill(pid_, SIGTERM);
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace tocsin::replay

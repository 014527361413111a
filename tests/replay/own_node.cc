#include "replay/own_node.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <iostream>
#include <pqxx/pqxx>
#include <stdexcept>

namespace tocsin::replay {
namespace {

// A port that was free a moment ago.
int free_port() {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  const bool is_bound = ::bind(socket, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
                        ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) == 0;
  ::close(socket);
  if (!is_bound) throw std::runtime_error("no free port");
  return ntohs(address.sin_port);
}

// The same server and user, another database.
std::string url_of(std::string url, const std::string& name) {
  const auto scheme = url.find("://");
  if (scheme == std::string::npos) return url + " dbname=" + name;
  const auto query = std::min(url.find('?', scheme), url.size());
  const auto path = std::min(url.find('/', scheme + 3), query);
  return url.replace(path, query - path, '/' + name);
}

void execute(const std::string& url, const std::string& statement) {
  pqxx::connection connection(url);
  pqxx::nontransaction(connection).exec(statement);
}

}  // namespace

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

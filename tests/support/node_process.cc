#include "support/node_process.h"

#include <signal.h>

#include <algorithm>
#include <regex>
#include <stdexcept>

namespace tocsin {
namespace {

std::vector<std::string> command_line(const std::string& database, std::vector<std::string> options) {
  std::vector<std::string> all{required_env("TOCSIN_BINARY"), "serve", "--database", database,
                               "--allow-superuser-handlers"};
  if (std::find(options.begin(), options.end(), "--listen") == options.end())
    options.insert(options.end(), {"--listen", "127.0.0.1:0"});
  all.insert(all.end(), options.begin(), options.end());
  return all;
}

}  // namespace

NodeProcess::NodeProcess(const std::string& database, std::vector<std::string> options, const std::string& token)
    : process_(command_line(database, std::move(options))), port_(find_port()), rest_(port_, token) {
  if (!eventually([this] { return is_ready(); })) throw std::runtime_error("the node is not ready: " + log());
}

// The node tells its port in its log.
int NodeProcess::find_port() {
  static const std::regex pattern("on port ([0-9]+)");
  int port = 0;
  eventually([&] {
    const std::string text = log();
    std::smatch match;
    if (std::regex_search(text, match, pattern)) port = std::stoi(match[1]);
    return port != 0 || !process_.is_running();
  });
  if (port == 0) throw std::runtime_error("the node does not start: " + log());
  return port;
}

int NodeProcess::stop() {
  process_.signal(SIGTERM);
  return process_.wait().value_or(-1);
}

void NodeProcess::kill() {
  process_.signal(SIGKILL);
  process_.wait();
}

}  // namespace tocsin

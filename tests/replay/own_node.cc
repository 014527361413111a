#include "replay/own_node.h"

#include <unistd.h>

#include <iostream>

#include "cli/rest_client.h"
#include "support/server.h"

namespace tocsin::replay {
namespace {

// Creates the database first.
std::vector<std::string> command_of(const std::string& binary, const std::string& maintenance, const std::string& name,
                                    int port) {
  execute(maintenance, "CREATE DATABASE " + name + " TEMPLATE template0 ENCODING 'UTF8'");
  return {binary,
          "serve",
          "--migrate",
          "--database",
          url_of(maintenance, name),
          "--listen",
          "127.0.0.1:" + std::to_string(port),
          "--log-level",
          "warn"};
}

}  // namespace

OwnNode::OwnNode(const std::string& binary, const std::string& database)
    : maintenance_(database),
      name_("tocsin_replay_" + std::to_string(::getpid())),
      port_(free_port()),
      process_(command_of(binary, maintenance_, name_, port_)) {}

OwnNode::~OwnNode() {
  stop();
  try {
    execute(maintenance_, "DROP DATABASE " + name_ + " WITH (FORCE)");
  } catch (const std::exception& error) {
    std::cerr << "left behind: database " << name_ << ": " << error.what() << '\n';
  }
}

bool OwnNode::stop() {
  try {
    process_.stop();
    return true;
  } catch (const Failure&) {
    return false;
  }
}

}  // namespace tocsin::replay

// A node whose handler for `kills` ends the process it runs in: fragile_node DATABASE_URL.
#include <cstdlib>

#include "tocsin/node.h"

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  tocsin::NodeConfig config;
  config.databases = {argv[1]};
  config.listen = "127.0.0.1:0";
  config.heartbeat_timeout = std::chrono::milliseconds(500);
  tocsin::Node node(config);
  node.handle("kills", [](const tocsin::Job&) -> tocsin::Outcome { std::abort(); });
  node.handle("fine", [](const tocsin::Job&) { return tocsin::Outcome::done(); });
  return tocsin::run_until_signal(node);
}

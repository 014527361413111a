#include "bench/own_node.h"

#include <CLI/CLI.hpp>

#include "bench/jobs.h"
#include "cli/node_options.h"
#include "tocsin/node.h"

namespace tocsin::bench {

int serve_main(int argc, char** argv) {
  NodeConfig config;
  CLI::App app("A node whose handlers do nothing.", "tocsin_bench");
  CLI::App* serve = app.add_subcommand("serve");
  add_node_options(*serve, config);
  CLI11_PARSE(app, argc, argv);
  Node node(config);
  node.handle(kType, [](const Job&) { return Outcome::done(); });
  return run_until_signal(node);
}

}  // namespace tocsin::bench

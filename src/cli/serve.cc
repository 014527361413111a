#include "cli/command.h"
#include "cli/config_file.h"
#include "cli/node_options.h"
#include "node/run.h"

namespace tocsin {
namespace {

int serve(NodeConfig& config) {
  check(config);
  return run_node(config);
}

}  // namespace

void add_serve_command(CLI::App& root, Chosen& chosen) {
  auto config = std::make_shared<NodeConfig>();
  CLI::App* command = add_command(root, "serve", "Run a node: API and engine",
                                  "Every option may also be a variable (--node-name: TOCSIN_NODE_NAME; several\n"
                                  "databases separated by commas) or a key of the --config file\n"
                                  "(node_name = \"a\"). Flags win over variables, variables over the file.\n"
                                  "Examples:\n"
                                  "  tocsin serve --migrate --database postgresql://tocsin@127.0.0.1/tocsin\n"
                                  "  tocsin serve --config /etc/tocsin.toml");
  add_node_options(*command, *config);
  on_run(command, chosen, config, serve);
}

}  // namespace tocsin

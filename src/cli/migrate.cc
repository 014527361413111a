#include "cli/command.h"
#include "cli/config_file.h"
#include "cli/node_options.h"
#include "node/run.h"

namespace tocsin {
namespace {

int migrate(NodeConfig& config) {
  check(config);
  return run_migrate(config);
}

}  // namespace

void add_migrate_command(CLI::App& root, Chosen& chosen) {
  auto config = std::make_shared<NodeConfig>();
  CLI::App* command = add_command(root, "migrate", "Create or upgrade the schema",
                                  "Safe to repeat: what is applied already stays as it is.\n"
                                  "Example:\n"
                                  "  tocsin migrate --database postgresql://tocsin@127.0.0.1/tocsin\n"
                                  "The first migration spreads the shards over all databases that it is given:\n"
                                  "  tocsin migrate --database a=postgresql://... --database b=postgresql://...");
  add_database_options(*command, *config);
  on_run(command, chosen, config, migrate);
}

}  // namespace tocsin

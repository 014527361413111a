// The settings of a node, as options of `serve` and `migrate`.
#pragma once

#include <map>
#include <string>

#include "tocsin/config.h"

namespace CLI {
class App;
}

namespace tocsin {

// `config` is written while the arguments are parsed and must outlive the app.
void add_database_options(CLI::App& command, NodeConfig& config);
void add_node_options(CLI::App& command, NodeConfig& config);

// Checks settings against each other. Throws BadUsage.
void check(const NodeConfig& config);

// "done=7d,dead=30d" over the defaults: whole days, 1 to 3650. Throws BadUsage.
std::map<std::string, int> parse_retain(const std::string& text);

}  // namespace tocsin

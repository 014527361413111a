// The settings of a node, as options of `serve` and `migrate`.
#pragma once

#include <map>
#include <string>

#include "tocsin/config.h"

namespace CLI {
class App;
}

namespace tocsin {

// Adds the options of all commands that open databases; of `serve`, which has these too. `config` is written while
// arguments and settings are read, and must outlive the app.
void add_database_options(CLI::App& command, NodeConfig& config);
void add_node_options(CLI::App& command, NodeConfig& config);

// Checks what no single option can: a database must be given. Throws BadUsage.
void check(const NodeConfig& config);

// "done=7d,dead=30d" over the defaults: whole days, 1 to 3650. Throws BadUsage.
std::map<std::string, int> parse_retain(const std::string& text);

}  // namespace tocsin

// The settings of a node, as options of `serve`, `migrate` and the `shard` commands.
#pragma once

#include <map>
#include <string>

#include "tocsin/config.h"

namespace CLI {
class App;
}

namespace tocsin {

// Adds the options of every command that opens databases: --config, --database, --shards and those of the log. `config`
// is written while arguments and settings are read, and must outlive the app.
void add_database_options(CLI::App& command, NodeConfig& config);
// Adds all options of `serve`: those above and the rest of NodeConfig.
void add_node_options(CLI::App& command, NodeConfig& config);

// Checks what no single option can: a database must be given, and none may be blank. Throws BadUsage.
void check(const NodeConfig& config);

// Days that history is kept, by status (done, cancelled, dead), from text such as "done=7d,dead=30d"; a status without
// an item has its default. Each is a duration of whole days, 1 to 3650. Throws BadUsage.
std::map<std::string, int> parse_retain(const std::string& text);

}  // namespace tocsin

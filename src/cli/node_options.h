// The settings of a node (NodeConfig), as options of the commands `serve`, `migrate` and `shard`. Thread: the main
// thread.
#pragma once

#include <map>
#include <string>

#include "tocsin/config.h"

namespace CLI {
class App;
}

namespace tocsin {

// Adds the options of every command that opens databases: --config, --database, --shards and the options of the log.
// `config` is written while arguments and settings are read, and must outlive the app.
void add_database_options(CLI::App& command, NodeConfig& config);
// Adds all options of `serve`: add_database_options(), and the other settings of NodeConfig.
void add_node_options(CLI::App& command, NodeConfig& config);

// Checks what no single option can: at least one database is given, and none is blank. Throws BadUsage.
void check(const NodeConfig& config);

// The days for which history is kept, by final status (done, cancelled, dead), from a text such as "done=7d,dead=30d".
// A status that the text lacks has its default. Each value is a duration of whole days, 1 to 3650. Throws BadUsage.
std::map<std::string, int> parse_retain(const std::string& text);

}  // namespace tocsin

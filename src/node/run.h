// The node's two programs, for the command line.
#pragma once

#include "tocsin/config.h"

namespace tocsin {

int run_node(const NodeConfig& config);     // returns the exit code
int run_migrate(const NodeConfig& config);  // the same

}  // namespace tocsin

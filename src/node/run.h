// The node's programs, for the command line. Each returns the exit code.
#pragma once

#include <chrono>
#include <string>

#include "tocsin/config.h"

namespace tocsin {

int run_node(const NodeConfig& config);
int run_migrate(const NodeConfig& config);

struct ShardCommand {
  enum class Kind { move, abort, rebalance, show };
  NodeConfig config;
  Kind kind = Kind::show;
  int shard = 0;
  std::string target;  // name of a database
  std::string source_url;
  std::string source_passfile;
  bool json = false;  // show: as JSON
  std::chrono::milliseconds longest_pause{1000}, patience{60'000};
};
int run_shard(const ShardCommand& command);

}  // namespace tocsin

// The commands that speak to the databases themselves: serve, migrate and shard. Each prints errors to standard error
// and returns the exit code: 0 done, 1 failed.
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
  std::string target;  // move: name of a database
  std::string source_url, source_passfile;
  bool json = false;                                                // show: as JSON
  std::chrono::milliseconds longest_pause{1000}, patience{60'000};  // these and source_...: as MoveOptions
};
int run_shard(const ShardCommand& command);

}  // namespace tocsin

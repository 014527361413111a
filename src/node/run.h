// The commands that connect to the databases themselves: serve, migrate and shard. The command line (cli/serve.cc,
// migrate.cc, shard_commands.cc) calls them on the main thread. Each prints errors to standard error and returns the
// exit code: 0 done, 1 failed.
#pragma once

#include <chrono>
#include <string>

#include "tocsin/config.h"

namespace tocsin {

struct Error;

// Prints "tocsin: MESSAGE" to standard error; "tocsin: FIELD: MESSAGE" for Error invalid with a field, which is the
// setting at fault. Returns 1.
int report_failure(const Error& error);
int run_node(const NodeConfig& config);     // serves until SIGTERM or SIGINT, then drains
int run_migrate(const NodeConfig& config);  // creates or upgrades the schema in all databases

struct ShardCommand {
  enum class Kind { move, abort, rebalance, show };  // abort: roll a move back; show: print the moves under way
  NodeConfig config;                                 // all databases; each must answer
  Kind kind = Kind::show;
  int shard = 0;       // move and abort
  std::string target;  // move: name of a database
  // For a move: the URL by which the target's server connects to the source; empty: the one in `config`.
  // `source_passfile`: a file on the target's machine with the password for that URL; empty: the target stores the
  // password that the URL has.
  std::string source_url, source_passfile;
  bool json = false;                              // show: as JSON
  std::chrono::milliseconds longest_pause{1000};  // a shard is write-frozen for at most this long; 50 ms to 30 s
  std::chrono::milliseconds patience{60'000};     // for which failing steps are repeated; 1 s to 1 d
};
// Returns when the moves are complete, possibly after hours.
int run_shard(const ShardCommand& command);

}  // namespace tocsin

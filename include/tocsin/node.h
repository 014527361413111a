// Start here: a Tocsin node inside your own program, with handlers written in C++.
//
//   tocsin::NodeConfig config;
//   config.databases = {"postgresql://..."};
//   tocsin::Node node(config);
//   node.handle("order.unpaid", [](const tocsin::Job& job) { return tocsin::Outcome::done(); });
//   return tocsin::run_until_signal(node);
#pragma once

#include <memory>
#include <string>

#include "tocsin/config.h"
#include "tocsin/error.h"
#include "tocsin/handler.h"

namespace tocsin {

// One process's share of a Tocsin cluster: REST listener, engine and handlers.
// Thread: owner only.
class Node {
 public:
  explicit Node(NodeConfig config);
  ~Node();  // stop()
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  // Runs the jobs of a type whose handler kind is "cpp". REQUIRES: before start(); one handler per type.
  void handle(const std::string& biz_type, CppHandler handler);

  // Connects, checks (or migrates) the schema, starts the engine and listens. Blocks for seconds, longer while it
  // migrates. Error: the reason, and nothing is left running.
  Status start();

  // The port it listens on, once started.
  int port() const;

  // Drains: refuses requests, gives its shards to other nodes, stops claiming, releases claimed jobs that have not
  // started, lets handlers finish within the drain time-out, writes all outcomes, leaves the membership. An attempt
  // that overruns the time-out counts as failed: its job is retried. Safe to call twice.
  void stop();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// Starts the node and serves until SIGTERM or SIGINT, then drains. Returns the exit code for main(): 0 after a drain, 1
// when it could not start (the reason is on standard error). REQUIRES: called from the main thread, before other
// threads exist.
int run_until_signal(Node& node);

}  // namespace tocsin

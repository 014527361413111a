// The main header of libtocsin: a Tocsin node inside your own program, with handlers written in C++.
//
//   tocsin::NodeConfig config;
//   config.databases = {"postgresql://..."};
//   tocsin::Node node(config);
//   node.handle("order.unpaid", [](const tocsin::Job& job) { return tocsin::Outcome::done(); });
//   return tocsin::run_until_signal(node);
//
// The type is registered once for the cluster: PUT /v1/types/order.unpaid with {"handler":{"kind":"cpp"}}.
#pragma once

#include <memory>
#include <string>

#include "tocsin/config.h"
#include "tocsin/error.h"
#include "tocsin/handler.h"

namespace tocsin {

// One node of a Tocsin cluster: REST listener, engine (finds due jobs and claims them) and handlers, with threads of
// its own from start() to stop(). Thread: all calls from one thread; handlers run on threads of the node, several at
// once.
class Node {
 public:
  explicit Node(NodeConfig config);  // checks nothing and connects to nothing: start() does
  ~Node();                           // stop()
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  // Sets the function that runs the jobs of the type `biz_type` on this node, if the type's handler kind is `cpp`. Jobs
  // of `cpp` types without a function are left to other nodes. A second function for a type is ignored. REQUIRES:
  // before start(); what the function refers to lives as long as the process (stop() may leave it running).
  void handle(const std::string& biz_type, CppHandler handler);

  // Connects, checks the schema (with `migrate_first` creates or upgrades it), starts the engine and listens. Blocks
  // for seconds, longer while it migrates. Error: why the node cannot start; nothing is left running. REQUIRES: called
  // once.
  Status start();

  // The TCP port of the REST listener; a free one if `listen` names port 0. REQUIRES: start() has succeeded, and stop()
  // has not been called.
  int port() const;

  // Drains: refuses requests, gives its shards (slices of all jobs) to other nodes, stops claiming, releases claimed
  // jobs that have not started, waits up to `drain_timeout` for running handlers, writes all outcomes and leaves the
  // cluster. Blocks for all of that: `drain_timeout` and some seconds at most, unless a broker or a database does not
  // answer. An attempt that overruns the time-out counts as failed: its job is retried, or dead after its last attempt.
  // Its function is left running, and what it returns is ignored. Safe to call twice.
  void stop();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// Starts the node and serves until SIGTERM or SIGINT, then drains; a further signal does not end the drain. Returns the
// exit code for main(): 0 after a drain, 1 when the node could not start (the reason is on standard error). Blocks the
// two signals, ignores SIGPIPE and raises the limit of open files. REQUIRES: called from the main thread before other
// threads exist: only threads that begin later have the signals blocked, and any other one would let them end the
// process at once.
int run_until_signal(Node& node);

}  // namespace tocsin

// A node as a process: until a signal ends it.
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>

#include "node/run.h"
#include "tocsin/node.h"

namespace tocsin {
namespace {

// The signals that end a node. Blocked in every thread that is started afterwards, so that only sigwait() receives
// them.
sigset_t block_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

// Thousands of consumers may hold a connection each; the usual soft limit of 1024 would stop them.
void raise_open_files() {
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0) return;
  files.rlim_cur = std::min<rlim_t>(files.rlim_max, 65536);
  setrlimit(RLIMIT_NOFILE, &files);
}

}  // namespace

int report_failure(const Error& error) {
  const bool has_setting = error.code == ErrorCode::invalid && !error.field.empty();
  std::fprintf(stderr, "tocsin: %s%s%s\n", has_setting ? error.field.c_str() : "", has_setting ? ": " : "",
               error.message.c_str());
  return 1;
}

int run_until_signal(Node& node) {
  signal(SIGPIPE, SIG_IGN);
  raise_open_files();
  const sigset_t signals = block_signals();
  if (auto done = node.start(); !done) return report_failure(done.error());
  int received = 0;
  sigwait(&signals, &received);
  spdlog::info("draining");
  node.stop();
  spdlog::info("stopped");
  return 0;
}

int run_node(const NodeConfig& config) {
  Node node(config);
  return run_until_signal(node);
}

}  // namespace tocsin

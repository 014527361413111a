// A node whose handlers harm it, each in its way: fragile_node DATABASE_URL.
#include <cstdlib>
#include <future>
#include <limits>
#include <new>
#include <stdexcept>

#include "tocsin/node.h"

int main(int argc, char** argv) {
  using tocsin::Job, tocsin::Outcome;
  if (argc < 2) return 2;
  tocsin::NodeConfig config;
  config.databases = {argv[1]};
  config.listen = "127.0.0.1:0";
  config.heartbeat_timeout = std::chrono::milliseconds(500);
  config.drain_timeout = std::chrono::seconds(1);
  tocsin::Node node(config);
  node.handle("kills", [](const Job&) -> Outcome { std::abort(); });
  node.handle("throws", [](const Job&) -> Outcome { throw std::runtime_error("no such shop"); });
  node.handle("throws.odd", [](const Job&) -> Outcome { throw 42; });
  node.handle("greedy", []([[maybe_unused]] const Job& job) -> Outcome {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    throw std::bad_alloc();  // the sanitizers' operator new would end the process
#endif
    const auto size = std::numeric_limits<std::ptrdiff_t>::max() / (1 + job.attempts);
    ::operator delete(::operator new(static_cast<std::size_t>(size)));  // as calls, which no compiler leaves out
    return Outcome::done();
  });
  node.handle("blocks", [](const Job&) -> Outcome {
    std::promise<void> never;
    never.get_future().wait();
    return Outcome::done();
  });
  node.handle("fine", [](const Job&) { return Outcome::done(); });
  return tocsin::run_until_signal(node);
}

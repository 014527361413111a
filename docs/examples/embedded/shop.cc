// A shop with a Tocsin node inside it and two handlers of its own.
//
//   build/shop postgresql://user@host/database [HOST:PORT]
#include <tocsin/node.h>

#include <cstdio>

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s DATABASE_URL [HOST:PORT]\n", argv[0]);
    return 2;
  }
  tocsin::NodeConfig config;
  config.databases = {argv[1]};
  config.migrate_first = true;
  if (argc > 2) config.listen = argv[2];

  tocsin::Node node(config);
  node.handle("order.unpaid", [](const tocsin::Job& job) {
    std::printf("order %s was not paid in time: cancelled\n", job.biz_id.c_str());
    std::fflush(stdout);
    return tocsin::Outcome::done();
  });
  node.handle("ticket.untouched", [](const tocsin::Job& job) {
    if (job.attempts < 2) return tocsin::Outcome::retry("nobody is on duty", std::chrono::milliseconds(100));
    return tocsin::Outcome::dead("nobody answers ticket " + job.biz_id);
  });
  return tocsin::run_until_signal(node);
}

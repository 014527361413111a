// A Tocsin node inside your own program: orders that were not paid in time are cancelled by a C++ function.
//
//   build/release/example_order_timeouts postgresql://user@host/database [HOST:PORT]
//
//   curl -X PUT localhost:7070/v1/types/order.unpaid -H 'content-type: application/json' -d
//   '{"handler":{"kind":"cpp"}}' curl localhost:7070/v1/jobs -H 'content-type: application/json'
//        -d '{"biz_type":"order.unpaid","biz_id":"order-4711","delay_ms":2000,"attribute":{"total":99}}'
#include <cstdio>

#include "tocsin/node.h"

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
    std::printf("order %s was not paid in time: cancelled (attempt %d, data %s)\n", job.biz_id.c_str(), job.attempts,
                job.attribute_json.c_str());
    std::fflush(stdout);
    return tocsin::Outcome::done();
  });
  return tocsin::run_until_signal(node);
}

// How fast jobs reach brokers that run on this machine, each started for its measurement.
#include <stdlib.h>

#include <filesystem>
#include <functional>

#include "bench/measurements.h"
#include "bench/workloads.h"
#ifdef TOCSIN_HAS_AMQP
#include "brokers/rabbitmq.h"
#endif
#ifdef TOCSIN_HAS_KAFKA
#include "brokers/kafka_cluster.h"
#endif
#ifdef TOCSIN_HAS_REDIS
#include "brokers/redis_server.h"
#endif

namespace tocsin::bench {
namespace {

// Where the brokers keep their data.
class Folder {
 public:
  Folder() {
    std::string path = (std::filesystem::temp_directory_path() / "tocsin-brokers.XXXXXX").string();
    if (!::mkdtemp(path.data())) throw Failure("cannot make a folder like " + path);
    path_ = path;
    ::setenv("TOCSIN_TEST_DIR", path.c_str(), 1);
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

 private:
  std::string path_;
};

// All due at one instant: claimed, published, confirmed and recorded as done.
[[maybe_unused]] double exit_rate(Bench& bench, const Json& handler) {
  Subject subject(bench.server, {bench.binary, handler.dump()});
  return drain_rate(subject, bench.sizes.broker_jobs);
}

#ifdef TOCSIN_HAS_AMQP
// What the broker takes from a client that does nothing else, with as many on their way as the node has.
double ceiling(AmqpProbe& probe, std::size_t n) {
  constexpr std::size_t kOnTheirWay = 1024;
  const std::string body(700, 'x');  // about that of a job
  const auto start = std::chrono::steady_clock::now();
  for (std::size_t i = 0; i < n; ++i) {
    probe.publish("bench.alone", body, std::to_string(i));
    if (i >= kOnTheirWay) probe.wait_for_confirms(kOnTheirWay);
  }
  probe.wait_for_confirms();
  return static_cast<double>(n) / std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void measure_amqp(Bench& bench) {
  RabbitMq broker;
  AmqpProbe probe(broker.port());
  probe.declare("bench.alone");
  probe.declare("bench");
  bench.results.add("brokers.amqp_alone", ceiling(probe, bench.sizes.broker_jobs));
  bench.results.add("brokers.amqp",
                    exit_rate(bench, {{"kind", "amqp"}, {"url", broker.url()}, {"routing_key", "bench"}}));
}
#endif

}  // namespace

void measure_brokers(Bench& bench) {
  const Folder folder;
#ifdef TOCSIN_HAS_REDIS
  {
    const RedisServerProcess redis;
    bench.results.add("brokers.redis",
                      exit_rate(bench, {{"kind", "redis"}, {"url", redis.url()}, {"stream", "bench"}}));
  }
#endif
#ifdef TOCSIN_HAS_KAFKA
  {
    KafkaCluster kafka;
    kafka.create("bench");
    bench.results.add(
        "brokers.kafka",
        exit_rate(bench, {{"kind", "kafka"}, {"bootstrap_servers", kafka.servers()}, {"topic", "bench"}}));
  }
#endif
#ifdef TOCSIN_HAS_AMQP
  measure_amqp(bench);
#endif
}

}  // namespace tocsin::bench

// The mock cluster of librdkafka: it lives in this process and speaks Kafka's protocol over loopback.
#pragma once

#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace tocsin {

struct Record {
  std::string key, body;
  std::map<std::string, std::string> headers;
};

// One broker. Throws std::runtime_error when it refuses.
// Thread: owner only, the main thread.
class KafkaCluster {
 public:
  KafkaCluster();
  ~KafkaCluster();
  KafkaCluster(const KafkaCluster&) = delete;
  KafkaCluster& operator=(const KafkaCluster&) = delete;

  std::string servers() const { return rd_kafka_mock_cluster_bootstraps(cluster_); }
  std::uint16_t port() const {
    const std::string all = servers();
    return static_cast<std::uint16_t>(std::stoi(all.substr(all.rfind(':') + 1)));
  }
  void create(const std::string& topic) { rd_kafka_mock_topic_create(cluster_, topic.c_str(), 2, 1); }
  void go_down() { rd_kafka_mock_broker_set_down(cluster_, 1); }
  // The next request to store messages is answered so.
  void refuse_once(rd_kafka_resp_err_t why) { rd_kafka_mock_push_request_errors(cluster_, kProduce, 1, why); }
  void come_up() { rd_kafka_mock_broker_set_up(cluster_, 1); }

  void publish(const std::string& topic, const std::string& body, const std::string& key = "",
               const std::string& id = "");
  // Returns when the cluster has all that was published.
  void flush();
  // Reads a topic from its beginning until `is_enough` says so, or for kPatience.
  std::vector<Record> read(const std::string& topic, const std::function<bool(const std::vector<Record>&)>& is_enough);

 private:
  static constexpr std::int16_t kProduce = 0;  // as the protocol numbers requests

  rd_kafka_t* client_;
  rd_kafka_t* producer_ = nullptr;
  rd_kafka_mock_cluster_t* cluster_;
};

}  // namespace tocsin

#include "brokers/kafka_cluster.h"

#include <stdexcept>

#include "support/process.h"

namespace tocsin {
namespace {

rd_kafka_t* make(rd_kafka_type_t type, const std::map<std::string, std::string>& properties) {
  rd_kafka_conf_t* conf = rd_kafka_conf_new();
  for (const auto& [name, value] : properties) rd_kafka_conf_set(conf, name.c_str(), value.c_str(), nullptr, 0);
  rd_kafka_conf_set_log_cb(conf, [](const rd_kafka_t*, int, const char*, const char*) {});
  return rd_kafka_new(type, conf, nullptr, 0);
}

void require(rd_kafka_resp_err_t code) {
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR) throw std::runtime_error(rd_kafka_err2str(code));
}

Record record_of(const rd_kafka_message_t& message) {
  Record record{{static_cast<const char*>(message.key), message.key_len},
                {static_cast<const char*>(message.payload), message.len},
                {}};
  rd_kafka_headers_t* headers = nullptr;
  rd_kafka_message_headers(&message, &headers);
  const char* name = nullptr;
  const void* value = nullptr;
  std::size_t size = 0;
  for (std::size_t i = 0;
       headers && rd_kafka_header_get_all(headers, i, &name, &value, &size) == RD_KAFKA_RESP_ERR_NO_ERROR; ++i)
    record.headers[name] = {static_cast<const char*>(value), size};
  return record;
}

}  // namespace

KafkaCluster::KafkaCluster() : client_(make(RD_KAFKA_PRODUCER, {})) {
  cluster_ = rd_kafka_mock_cluster_new(client_, 1);
  producer_ = make(RD_KAFKA_PRODUCER, {{"bootstrap.servers", servers()}});
}

KafkaCluster::~KafkaCluster() {
  rd_kafka_destroy(producer_);
  rd_kafka_mock_cluster_destroy(cluster_);
  rd_kafka_destroy(client_);
}

void KafkaCluster::publish(const std::string& topic, const std::string& body, const std::string& key,
                           const std::string& id) {
  rd_kafka_headers_t* headers = rd_kafka_headers_new(1);
  if (!id.empty()) rd_kafka_header_add(headers, "message-id", -1, id.data(), static_cast<ssize_t>(id.size()));
  require(rd_kafka_producev(producer_, RD_KAFKA_V_TOPIC(topic.c_str()), RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
                            RD_KAFKA_V_KEY(key.data(), key.size()),
                            RD_KAFKA_V_VALUE(const_cast<char*>(body.data()), body.size()), RD_KAFKA_V_HEADERS(headers),
                            RD_KAFKA_V_END));
}

void KafkaCluster::flush() { require(rd_kafka_flush(producer_, 30'000)); }

std::vector<Record> KafkaCluster::read(const std::string& topic,
                                       const std::function<bool(const std::vector<Record>&)>& is_enough) {
  rd_kafka_t* consumer = make(
      RD_KAFKA_CONSUMER, {{"bootstrap.servers", servers()}, {"group.id", "probe"}, {"auto.offset.reset", "earliest"}});
  rd_kafka_topic_partition_list_t* parts = rd_kafka_topic_partition_list_new(2);
  for (const int i : {0, 1})
    rd_kafka_topic_partition_list_add(parts, topic.c_str(), i)->offset = RD_KAFKA_OFFSET_BEGINNING;
  rd_kafka_assign(consumer, parts);
  rd_kafka_topic_partition_list_destroy(parts);
  std::vector<Record> records;
  eventually([&] {
    while (rd_kafka_message_t* message = rd_kafka_consumer_poll(consumer, 50)) {
      if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR) records.push_back(record_of(*message));
      rd_kafka_message_destroy(message);
    }
    return is_enough(records);
  });
  rd_kafka_consumer_close(consumer);
  rd_kafka_destroy(consumer);
  return records;
}

}  // namespace tocsin

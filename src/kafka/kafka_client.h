// What the producer (KafkaLink), the consumer (KafkaSource) and the reading of settings (kafka.cc) share:
// configuration, client and errors of librdkafka. Thread: the caller's.
#pragma once

#include <librdkafka/rdkafka.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "broker/settings.h"
#include "tocsin/error.h"

namespace tocsin {

// Properties of librdkafka that say how to reach and log in to a cluster.
using KafkaProperties = std::vector<std::pair<std::string, std::string>>;

// Reads bootstrap_servers, security_protocol, sasl_mechanism, username and password. Mistakes are stored in `settings`
// (Settings::end()). The first property is bootstrap.servers.
KafkaProperties read_kafka_cluster(Settings& settings);

// Deleter of KafkaPtr, which owns an object of librdkafka.
struct KafkaDestroy {
  void operator()(rd_kafka_t* client) const { rd_kafka_destroy(client); }
  void operator()(rd_kafka_conf_t* conf) const { rd_kafka_conf_destroy(conf); }
  void operator()(rd_kafka_message_t* message) const { rd_kafka_message_destroy(message); }
  void operator()(rd_kafka_topic_partition_list_t* list) const { rd_kafka_topic_partition_list_destroy(list); }
  void operator()(rd_kafka_headers_t* headers) const { rd_kafka_headers_destroy(headers); }
};
template <class T>
using KafkaPtr = std::unique_ptr<T, KafkaDestroy>;

// Error invalid: a property is wrong. The library's log lines are discarded; failures come as results of its calls, and
// through the callbacks that the caller sets.
Result<KafkaPtr<rd_kafka_conf_t>> make_kafka_conf(const KafkaProperties& properties);
// Error invalid: the configuration is refused.
Result<KafkaPtr<rd_kafka_t>> make_kafka_client(rd_kafka_type_t type, KafkaPtr<rd_kafka_conf_t> conf);

// Asks the cluster about the topic, and waits for the answer. Error unavailable: there is no answer within `timeout`,
// or the cluster reports an error for the topic (unknown, not authorised).
Status check_kafka_topic(rd_kafka_t* client, const std::string& topic, std::chrono::milliseconds timeout);

// An Error unavailable with the library's text for `code`, and `more` in parentheses.
Error kafka_error(rd_kafka_resp_err_t code, const std::string& more = "");

}  // namespace tocsin

#include "kafka/kafka_client.h"

#include <map>
#include <set>

#include "base/utf8.h"

namespace tocsin {
namespace {

constexpr std::size_t kMostServers = 2048;

void say_nothing(const rd_kafka_t*, int, const char*, const char*) {}

void read_choice(Settings& settings, KafkaProperties& out, const std::string& name, const std::string& property,
                 const std::set<std::string>& choices) {
  const auto value = settings.text(name);
  if (!value) return;
  if (!choices.contains(*value)) {
    std::string all;
    for (const auto& each : choices) all += (all.empty() ? "" : ", ") + each;
    settings.fail(name, "must be one of " + all);
  }
  out.emplace_back(property, *value);
}

// A login that is not used, or lacks a part, would show only when a job fires.
void check_login(Settings& settings, const KafkaProperties& read) {
  const std::map<std::string, std::string> all(read.begin(), read.end());
  const auto protocol = all.find("security.protocol");
  const bool has_login = protocol != all.end() && protocol->second.starts_with("sasl");
  for (const auto& [name, property] :
       {std::pair("sasl_mechanism", "sasl.mechanism"), {"username", "sasl.username"}, {"password", "sasl.password"}}) {
    if (all.contains(property) == has_login) continue;
    settings.fail(name, has_login ? "is needed with security_protocol " + protocol->second
                                  : "is for security_protocol sasl_plaintext and sasl_ssl");
  }
}

}  // namespace

KafkaProperties read_kafka_cluster(Settings& settings) {
  KafkaProperties out;
  out.emplace_back("bootstrap.servers", settings.required_text("bootstrap_servers", kMostServers));
  read_choice(settings, out, "security_protocol", "security.protocol",
              {"plaintext", "ssl", "sasl_plaintext", "sasl_ssl"});
  read_choice(settings, out, "sasl_mechanism", "sasl.mechanism", {"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"});
  if (const auto user = settings.text("username")) out.emplace_back("sasl.username", *user);
  if (const auto password = settings.text("password", 1024)) out.emplace_back("sasl.password", *password);
  check_login(settings, out);
  return out;
}

Result<KafkaPtr<rd_kafka_conf_t>> make_kafka_conf(const KafkaProperties& properties) {
  KafkaPtr<rd_kafka_conf_t> conf(rd_kafka_conf_new());
  rd_kafka_conf_set_log_cb(conf.get(), say_nothing);
  char why[256] = "";
  for (const auto& [name, value] : properties) {
    if (rd_kafka_conf_set(conf.get(), name.c_str(), value.c_str(), why, sizeof why) != RD_KAFKA_CONF_OK)
      return Error{ErrorCode::invalid, name + " is not right", {}};
  }
  return conf;
}

Result<KafkaPtr<rd_kafka_t>> make_kafka_client(rd_kafka_type_t type, KafkaPtr<rd_kafka_conf_t> conf) {
  char why[256] = "";
  rd_kafka_t* client = rd_kafka_new(type, conf.get(), why, sizeof why);
  if (!client) return Error{ErrorCode::invalid, storable(why, sizeof why), {}};
  static_cast<void>(conf.release());  // the client's now
  return KafkaPtr<rd_kafka_t>(client);
}

Status check_kafka_topic(rd_kafka_t* client, const std::string& topic, std::chrono::milliseconds timeout) {
  rd_kafka_topic_t* handle = rd_kafka_topic_new(client, topic.c_str(), nullptr);
  if (!handle) return kafka_error(rd_kafka_last_error());
  const struct rd_kafka_metadata* found = nullptr;
  rd_kafka_resp_err_t code = rd_kafka_metadata(client, 0, handle, &found, static_cast<int>(timeout.count()));
  if (code == RD_KAFKA_RESP_ERR_NO_ERROR && found->topic_cnt == 1) code = found->topics[0].err;
  if (found) rd_kafka_metadata_destroy(found);
  rd_kafka_topic_destroy(handle);
  return code == RD_KAFKA_RESP_ERR_NO_ERROR ? Status(Unit{}) : Status(kafka_error(code, "topic " + topic));
}

Error kafka_error(rd_kafka_resp_err_t code, const std::string& more) {
  std::string text = rd_kafka_err2str(code);
  if (!more.empty()) text += " (" + storable(more, 300) + ")";
  return {ErrorCode::unavailable, std::move(text), {}};
}

}  // namespace tocsin

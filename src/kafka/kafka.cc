#include "kafka/kafka.h"

#include "broker/settings.h"
#include "kafka/kafka_link.h"
#include "kafka/kafka_source.h"

namespace tocsin {
namespace {

constexpr std::size_t kMostTopic = 249;  // what Kafka takes

std::string read_topic(Settings& settings, const std::string& name, const std::string& topic) {
  const bool is_allowed =
      topic.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") ==
          std::string::npos &&
      topic != "." && topic != "..";
  if (!is_allowed) settings.fail(name, "has characters other than A-Z a-z 0-9 . _ -");
  return topic;
}

// "kafka://" and the servers, for logs and errors.
std::string shown(const KafkaProperties& cluster) { return "kafka://" + cluster.front().second; }

// Reports a wrong property now, not when the first job fires.
std::optional<Error> check(const KafkaProperties& cluster, const std::string& path) {
  auto conf = make_kafka_conf(cluster);
  return conf ? std::nullopt
              : std::optional(Error{ErrorCode::invalid, conf.error().message, path + "bootstrap_servers"});
}

}  // namespace

Result<Exit> read_kafka_exit(const BizType& type, const GuardPtr& guard) {
  Settings settings(type.handler_json, kHandlerPath);
  const KafkaProperties cluster = read_kafka_cluster(settings);
  const std::string topic = read_topic(settings, "topic", settings.required_text("topic", kMostTopic));
  if (auto error = settings.end()) return *error;
  if (auto error = check(cluster, kHandlerPath)) return *error;
  const auto make_link = [cluster, topic, guard, timeout = type.ttr * 9 / 10]() -> std::unique_ptr<Link> {
    return std::make_unique<KafkaLink>(cluster, topic, guard, timeout);
  };
  return Exit{shown(cluster), make_link, ""};
}

Result<Entry> read_kafka_entry(const std::string& settings_json, const std::string& path) {
  Settings settings(settings_json, path);
  KafkaSubscription subscription;
  subscription.cluster = read_kafka_cluster(settings);
  subscription.topic = read_topic(settings, "topic", settings.required_text("topic", kMostTopic));
  subscription.group = settings.text("group").value_or("tocsin");
  if (subscription.group.empty()) settings.fail("group", "must not be empty");
  if (const auto topic = settings.text("dead_letter_topic", kMostTopic); topic && !topic->empty())
    subscription.dead_letter_topic = read_topic(settings, "dead_letter_topic", *topic);
  if (!subscription.dead_letter_topic.empty() && subscription.dead_letter_topic == subscription.topic)
    settings.fail("dead_letter_topic", "must not be the topic itself");
  if (auto error = settings.end()) return *error;
  if (auto error = check(subscription.cluster, path)) return *error;
  return Entry{shown(subscription.cluster) + " topic " + subscription.topic,
               [subscription] { return std::make_unique<KafkaSource>(subscription); }};
}

}  // namespace tocsin

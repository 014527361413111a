#include "entry/broker_kinds.h"

#include <map>
#include <string>

#include "broker/settings.h"

#ifdef TOCSIN_HAS_AMQP
#include "amqp/amqp.h"
#endif
#ifdef TOCSIN_HAS_KAFKA
#include "kafka/kafka.h"
#endif
#ifdef TOCSIN_HAS_REDIS
#include "redis/redis.h"
#endif

namespace tocsin {
namespace {

struct Kind {
  BrokerKind::ExitReader read_exit = nullptr;
  Result<Entry> (*parse_entry_topic)(const std::string& settings_json, const std::string& path) = nullptr;  // or none
};

const std::map<std::string, Kind>& kinds() {
  static const std::map<std::string, Kind> all = {
#ifdef TOCSIN_HAS_AMQP
      {"amqp", {read_amqp_exit, read_amqp_entry}},
#endif
#ifdef TOCSIN_HAS_KAFKA
      {"kafka", {read_kafka_exit, read_kafka_entry}},
#endif
#ifdef TOCSIN_HAS_REDIS
      {"redis", {read_redis_exit, nullptr}},
#endif
  };
  return all;
}

}  // namespace

void add_broker_kinds(HandlerRegistry& registry, const AddressGuard& guard, const Clock& clock,
                      const BrokerKind::JobWriter& write_job) {
  const auto shared = std::make_shared<const AddressGuard>(guard);
  for (const auto& [name, kind] : kinds())
    registry.add(std::make_unique<BrokerKind>(name, kind.read_exit, shared, clock, write_job));
}

Result<Entry> parse_entry_topic(const std::string& settings_json, std::size_t index) {
  const std::string path = "entry[" + std::to_string(index) + "].";
  Settings settings(settings_json, path);
  const std::string name = settings.required_text("kind");
  const auto kind = kinds().find(name);
  if (kind != kinds().end() && kind->second.parse_entry_topic)
    return kind->second.parse_entry_topic(settings_json, path);
  if (auto error = settings.problem()) return *error;
  std::string known;
  for (const auto& [each, what] : kinds())
    if (what.parse_entry_topic) known += (known.empty() ? "" : ", ") + each;
  return Error{ErrorCode::invalid,
               known.empty() ? "this build has no brokers" : "must be one of " + known + " (the kinds of this build)",
               path + "kind"};
}

}  // namespace tocsin

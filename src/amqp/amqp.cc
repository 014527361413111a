#include "amqp/amqp.h"

#include "amqp/amqp_link.h"
#include "amqp/amqp_source.h"
#include "broker/settings.h"

namespace tocsin {
namespace {

constexpr std::uint16_t kPort = 5672;
constexpr std::int64_t kPrefetch = 500, kMostPrefetch = 10'000;

AmqpServer server_of(const BrokerUrl& url, const GuardPtr& guard) {
  AmqpServer server;
  server.peer = {url.host, url.port, guard};
  if (!url.user.empty()) server.user = url.user, server.password = url.password;
  if (url.has_path) server.vhost = url.path;
  return server;
}

}  // namespace

Result<Exit> read_amqp_exit(const BizType& type, const GuardPtr& guard) {
  Settings settings(type.handler_json, kHandlerPath);
  const BrokerUrl url = settings.required_url("url", "amqp", kPort);
  AmqpRoute route;
  route.exchange = settings.text("exchange").value_or("");
  route.routing_key = settings.text("routing_key").value_or(type.name);
  if (auto error = settings.end()) return *error;
  const auto make_link = [server = server_of(url, guard), route]() -> std::unique_ptr<Link> {
    return std::make_unique<AmqpLink>(server, route);
  };
  return Exit{url.shown, make_link, url.host};
}

Result<Entry> read_amqp_entry(const std::string& settings_json, const std::string& path) {
  Settings settings(settings_json, path);
  const BrokerUrl url = settings.required_url("url", "amqp", kPort);
  const std::string queue = settings.required_text("queue");
  const auto prefetch = static_cast<std::uint16_t>(settings.integer("prefetch", 1, kMostPrefetch).value_or(kPrefetch));
  if (auto error = settings.end()) return *error;
  return Entry{url.shown + " queue " + queue, [server = server_of(url, nullptr), queue, prefetch] {
                 return std::make_unique<AmqpSource>(server, queue, prefetch);
               }};
}

}  // namespace tocsin

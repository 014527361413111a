#include "redis/redis.h"

#include <charconv>

#include "broker/settings.h"
#include "redis/redis_link.h"

namespace tocsin {
namespace {

constexpr std::uint16_t kPort = 6379;
constexpr std::size_t kMostKeyBytes = 1024;

int read_database(Settings& settings, const BrokerUrl& url) {
  int number = 0;
  if (!url.has_path) return 0;
  const auto [end, ec] = std::from_chars(url.path.data(), url.path.data() + url.path.size(), number);
  if (ec != std::errc() || end != url.path.data() + url.path.size() || number < 0)
    settings.fail("url", "the path must be the number of a database");
  return number;
}

}  // namespace

Result<Exit> read_redis_exit(const BizType& type, const GuardPtr& guard) {
  Settings settings(type.handler_json, kHandlerPath);
  const BrokerUrl url = settings.required_url("url", "redis", kPort);
  RedisServer server{{url.host, url.port, guard}, url.user, url.password, read_database(settings, url)};
  RedisStream stream;
  stream.name = settings.text("stream", kMostKeyBytes).value_or(type.name);
  if (stream.name.empty()) settings.fail("stream", "must not be empty");
  stream.maxlen = settings.integer("maxlen", 1, INT64_MAX);
  if (auto error = settings.end()) return *error;
  const auto make_link = [server, stream]() -> std::unique_ptr<Link> {
    return std::make_unique<RedisLink>(server, stream);
  };
  return Exit{url.shown, make_link, url.host};
}

}  // namespace tocsin

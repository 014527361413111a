#include "delivery/webhook_settings.h"

#include <algorithm>
#include <array>
#include <boost/url.hpp>
#include <charconv>
#include <nlohmann/json.hpp>
#include <string_view>

#include "delivery/signature.h"

namespace tocsin {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxUrlBytes = 2048;
constexpr std::size_t kMaxHeaders = 64;
constexpr std::size_t kMaxHeaderBytes = 8192;                      // names and values: what common servers accept
constexpr std::size_t kMinSecretBytes = 24, kMaxSecretBytes = 64;  // as Standard Webhooks says
constexpr std::size_t kMaxSecrets = 4;

// Set by the sender itself, or headers of the connection rather than of the request.
constexpr std::array<std::string_view, 19> kReservedHeaders = {"connection",
                                                               "content-length",
                                                               "content-type",
                                                               "expect",
                                                               "host",
                                                               "keep-alive",
                                                               "proxy-connection",
                                                               "te",
                                                               "trailer",
                                                               "transfer-encoding",
                                                               "tocsin-attempt",
                                                               "tocsin-lease-token",
                                                               "tocsin-lease-until",
                                                               "upgrade",
                                                               "user-agent",
                                                               "webhook-id",
                                                               "webhook-signature",
                                                               "webhook-timestamp",
                                                               "traceparent"};

Error invalid(const std::string& name, std::string message) {
  return {ErrorCode::invalid, std::move(message), "handler." + name};
}

std::string to_lower(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return text;
}

bool is_token_char(char c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
         std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

bool is_host_char(char c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '.' || c == '-' || c == '_';
}

bool is_value_char(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte == '\t' || (byte >= 0x20 && byte != 0x7f);
}

// The read_... functions return the error, or nullopt.
std::optional<Error> read_url(const json& value, WebhookSettings& settings) {
  const auto wrong = [](const char* message) { return invalid("url", message); };
  if (!value.is_string()) return wrong("must be a string");
  const std::string text = value.get<std::string>();
  if (text.size() > kMaxUrlBytes) return wrong("longer than 2048 bytes");
  const auto parsed = boost::urls::parse_absolute_uri(text);
  if (!parsed) return wrong("must be an absolute URL without a fragment, such as https://example.com/hook");
  const boost::urls::url_view& url = *parsed;

  HttpTarget& target = settings.target;
  if (url.scheme_id() != boost::urls::scheme::http && url.scheme_id() != boost::urls::scheme::https)
    return wrong("the scheme must be http or https");
  target.is_https = url.scheme_id() == boost::urls::scheme::https;
  if (url.has_userinfo()) return wrong("must not hold a user name or password");

  // Boost.URL 1.81 takes what follows a port for a path even when no slash begins it: "http://h:-1/".
  if (!url.encoded_path().empty() && !url.encoded_path().starts_with('/')) return wrong("the port is not a number");
  if (url.host_type() == boost::urls::host_type::ipvfuture) return wrong("the host is neither a name nor an address");
  const bool is_ipv6 = url.host_type() == boost::urls::host_type::ipv6;
  target.host = std::string(url.encoded_host_address().data(), url.encoded_host_address().size());
  if (target.host.empty()) return wrong("has no host");
  if (!is_ipv6 && !std::ranges::all_of(target.host, is_host_char))
    return wrong("the host is neither a name nor an address");

  int port = target.is_https ? 443 : 80;
  const std::string digits(url.port().data(), url.port().size());
  if (!digits.empty()) {
    const auto [end, ec] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
    if (ec != std::errc() || port < 1 || port > 65535) return wrong("the port must lie between 1 and 65535");
  }
  target.port = static_cast<std::uint16_t>(port);

  const std::string host = is_ipv6 ? "[" + target.host + "]" : target.host;
  target.authority = digits.empty() ? host : host + ":" + std::to_string(port);
  target.origin = std::string(target.is_https ? "https://" : "http://") + to_lower(host) + ":" + std::to_string(port);
  target.path = std::string(url.encoded_target().data(), url.encoded_target().size());
  if (!target.path.starts_with('/')) target.path.insert(0, 1, '/');
  return {};
}

std::optional<Error> add_key(const std::string& field, const json& value, WebhookSettings& settings) {
  const auto key = value.is_string() ? decode_webhook_secret(value.get_ref<const std::string&>()) : std::nullopt;
  if (!key || key->size() < kMinSecretBytes || key->size() > kMaxSecretBytes)
    return invalid(field, "must be whsec_ and the base64 text of 24 to 64 bytes");
  settings.keys.push_back(*key);
  return {};
}

// One secret, or several while receivers change from one to the next: each signs every request.
std::optional<Error> read_secret(const json& value, WebhookSettings& settings) {
  if (!value.is_array()) return add_key("secret", value, settings);
  if (value.empty() || value.size() > kMaxSecrets) return invalid("secret", "must be one secret, or a list of 1 to 4");
  for (std::size_t i = 0; i < value.size(); ++i) {
    if (auto error = add_key("secret[" + std::to_string(i) + "]", value[i], settings)) return error;
  }
  return {};
}

std::optional<Error> read_timeout(const json& value, WebhookSettings& settings) {
  constexpr std::int64_t kMaxMs = 365LL * 24 * 3600 * 1000;  // far past any ttr, and safe in microseconds
  if (!value.is_number_integer() || value < 1 || value > kMaxMs)
    return invalid("timeout_ms", "must be an integer of at least 1");
  settings.timeout = std::chrono::milliseconds(value.get<std::int64_t>());
  settings.is_timeout_given = true;
  return {};
}

std::optional<Error> read_headers(const json& value, WebhookSettings& settings) {
  if (!value.is_object()) return invalid("headers", "must be an object of strings");
  if (value.size() > kMaxHeaders) return invalid("headers", "more than 64 headers");
  std::size_t bytes = 0;
  for (const auto& [name, text] : value.items()) {
    if (name.empty() || !std::ranges::all_of(name, is_token_char))
      return invalid("headers", "a header name holds characters that HTTP does not allow");
    const std::string field = "headers." + name;
    if (std::ranges::find(kReservedHeaders, to_lower(name)) != kReservedHeaders.end())
      return invalid(field, "this header is set by Tocsin");
    if (!text.is_string()) return invalid(field, "must be a string");
    const auto& content = text.get_ref<const std::string&>();
    if (!std::ranges::all_of(content, is_value_char)) return invalid(field, "must not hold control characters");
    bytes += name.size() + content.size();
    settings.headers.emplace_back(name, content);
  }
  if (bytes > kMaxHeaderBytes) return invalid("headers", "larger than 8192 bytes");
  return {};
}

std::optional<Error> read_async(const json& value, WebhookSettings& settings) {
  if (!value.is_boolean()) return invalid("async", "must be true or false");
  settings.is_async = value.get<bool>();
  return {};
}

std::optional<Error> read_field(const std::string& name, const json& value, WebhookSettings& settings) {
  if (name == "kind") return {};
  if (name == "url") return read_url(value, settings);
  if (name == "secret") return value.is_null() ? std::nullopt : read_secret(value, settings);
  if (name == "timeout_ms") return value.is_null() ? std::nullopt : read_timeout(value, settings);
  if (name == "headers") return value.is_null() ? std::nullopt : read_headers(value, settings);
  if (name == "async") return value.is_null() ? std::nullopt : read_async(value, settings);
  return invalid(name, "unknown field");
}

}  // namespace

Result<WebhookSettings> parse_webhook_settings(const std::string& handler_json) {
  const json handler = json::parse(handler_json, nullptr, /*allow_exceptions=*/false);
  if (!handler.is_object()) return Error{ErrorCode::invalid, "must be an object", "handler"};
  if (!handler.contains("url")) return invalid("url", "is missing");
  WebhookSettings settings;
  for (const auto& [name, value] : handler.items()) {
    if (auto error = read_field(name, value, settings)) return *error;
  }
  return settings;
}

std::optional<Error> check_webhook(const std::string& handler_json, Duration ttr) {
  const auto parsed = parse_webhook_settings(handler_json);
  if (!parsed) return parsed.error();
  const WebhookSettings& settings = parsed.value();
  if (settings.is_timeout_given && settings.timeout > ttr) return invalid("timeout_ms", "must not exceed ttr_ms");
  return {};
}

}  // namespace tocsin

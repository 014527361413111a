#include "broker/settings.h"

#include <algorithm>
#include <boost/url.hpp>
#include <charconv>
#include <nlohmann/json.hpp>

#include "base/utf8.h"

namespace tocsin {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxUrlBytes = 2048;

bool has_control(std::string_view text) {
  return std::ranges::any_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

bool is_host_char(char c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '.' || c == '-' ||
         c == '_' || c == ':';
}

// The mistake; empty: none.
std::string read_url(const std::string& text, const std::string& scheme, BrokerUrl& out) {
  const auto parsed = boost::urls::parse_absolute_uri(text);
  if (!parsed) return "must be a URL such as " + scheme + "://user:password@host:" + std::to_string(out.port);
  const boost::urls::url_view url = *parsed;
  if (std::string_view(url.scheme().data(), url.scheme().size()) != scheme) return "the scheme must be " + scheme;
  if (url.has_query()) return "must have no query";
  out.host = url.host_address();
  if (out.host.empty()) return "has no host";
  if (!std::ranges::all_of(out.host, is_host_char)) return "the host is neither a name nor an address";
  if (const std::string_view digits(url.port().data(), url.port().size()); !digits.empty()) {
    int port = 0;
    const auto [end, ec] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
    if (ec != std::errc() || port < 1 || port > 65535) return "the port must lie between 1 and 65535";
    out.port = static_cast<std::uint16_t>(port);
  }
  out.user = url.user();
  out.password = url.password();
  if (!url.encoded_path().empty() && !url.encoded_path().starts_with('/')) return "the port is not a number";
  out.has_path = url.encoded_path().size() > 1;
  if (out.has_path) out.path = std::string(url.path()).substr(1);
  if (!is_utf8(out.path) || has_control(out.path + out.user + out.password)) return "holds characters that it must not";
  const bool is_ipv6 = out.host.find(':') != std::string::npos;
  out.shown = scheme + "://" + (is_ipv6 ? "[" + out.host + "]" : out.host) + ":" + std::to_string(out.port);
  return {};
}

}  // namespace

Settings::Settings(const std::string& text, std::string path)
    : object_(std::make_unique<json>(json::parse(text, nullptr, /*allow_exceptions=*/false))), path_(std::move(path)) {
  asked_.insert("kind");
  if (!object_->is_object()) {
    error_ = Error{ErrorCode::invalid, "must be an object", path_.substr(0, path_.size() - 1)};
    *object_ = json::object();
  }
}

Settings::~Settings() = default;

const json* Settings::find(const std::string& name) {
  asked_.insert(name);
  const auto it = object_->find(name);
  return error_ || it == object_->end() || it->is_null() ? nullptr : &*it;
}

std::optional<std::string> Settings::text(const std::string& name, std::size_t most_bytes) {
  const json* value = find(name);
  if (!value) return {};
  if (!value->is_string()) return fail(name, "must be a string"), std::nullopt;
  const auto& text = value->get_ref<const std::string&>();
  if (text.size() > most_bytes) return fail(name, "longer than " + std::to_string(most_bytes) + " bytes"), std::nullopt;
  if (has_control(text) || !is_utf8(text)) return fail(name, "must not hold control characters"), std::nullopt;
  return text;
}

std::optional<std::int64_t> Settings::integer(const std::string& name, std::int64_t least, std::int64_t most) {
  const json* value = find(name);
  if (!value) return {};
  if (value->is_number_integer() && *value >= least && *value <= most) return value->get<std::int64_t>();
  fail(name, "must be an integer from " + std::to_string(least) + " to " + std::to_string(most));
  return {};
}

std::optional<bool> Settings::boolean(const std::string& name) {
  const json* value = find(name);
  if (!value) return {};
  if (value->is_boolean()) return value->get<bool>();
  fail(name, "must be true or false");
  return {};
}

std::optional<BrokerUrl> Settings::url(const std::string& name, const std::string& scheme, std::uint16_t default_port) {
  const auto written = text(name, kMaxUrlBytes);
  if (!written) return {};
  BrokerUrl url;
  url.port = default_port;
  const std::string wrong = read_url(*written, scheme, url);
  if (wrong.empty()) return url;
  fail(name, wrong);
  return {};
}

std::string Settings::required_text(const std::string& name, std::size_t most_bytes) {
  const auto value = text(name, most_bytes);
  if (!value) fail(name, "is missing");
  if (value && value->empty()) fail(name, "must not be empty");
  return value.value_or("");
}

BrokerUrl Settings::required_url(const std::string& name, const std::string& scheme, std::uint16_t default_port) {
  const auto value = url(name, scheme, default_port);
  if (!value) fail(name, "is missing");
  return value.value_or(BrokerUrl{});
}

void Settings::fail(const std::string& name, const std::string& why) {
  if (!error_) error_ = Error{ErrorCode::invalid, why, path_ + name};
}

std::optional<Error> Settings::end() {
  for (const auto& [name, value] : object_->items())
    if (!asked_.contains(name)) fail(name, "unknown field");
  return error_;
}

}  // namespace tocsin

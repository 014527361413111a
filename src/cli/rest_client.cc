#include "cli/rest_client.h"

#include <httplib.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>

#include "base/text.h"
#include "cli/config_file.h"
#include "cli/pause.h"
#include "cli/raw_json.h"

namespace tocsin {
namespace {

constexpr std::chrono::seconds kConnectTimeout(5);

std::string encode(const std::string& text) {
  constexpr std::string_view kPlain = "-._~";
  std::string encoded;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    std::array<char, 4> hex{};
    if (byte < 0x80 && (std::isalnum(byte) != 0 || kPlain.find(c) != kPlain.npos)) {
      encoded += c;
    } else {
      std::snprintf(hex.data(), hex.size(), "%%%02X", byte);
      encoded += hex.data();
    }
  }
  return encoded;
}

std::string reason(httplib::Error error) {
  using httplib::Error;
  constexpr std::pair<Error, const char*> kReasons[] = {
      {Error::Connection, "no connection"},
      {Error::ConnectionTimeout, "connecting took too long"},
      {Error::Read, "no answer in time, or the connection broke"},
      {Error::Write, "the connection broke while sending"},
      {Error::SSLServerVerification, "its certificate cannot be verified"},
      {Error::SSLConnection, "no TLS connection"}};
  for (const auto& [known, why] : kReasons)
    if (known == error) return why;
  return httplib::to_string(error);
}

// "http://host:7070/base/" is its origin and "/base".
std::pair<std::string, std::string> split(const std::string& url) {
  // Without a scheme it is at least host:port: a lone word is more likely a slip than a host.
  const bool is_word = url.find_first_of(":/") == std::string::npos;
  const std::string with_scheme = url.find("://") == std::string::npos ? "http://" + url : url;
  const std::size_t host = with_scheme.find("://") + 3;
  const std::size_t path = std::min(with_scheme.find('/', host), with_scheme.size());
  std::string prefix = with_scheme.substr(path);
  while (prefix.ends_with('/')) prefix.pop_back();
  const bool is_web = with_scheme.starts_with("http://") || with_scheme.starts_with("https://");
  if (is_word || !is_web || path == host || with_scheme.find_first_of("?# @") != std::string::npos)
    throw BadUsage("--url: '" + printable(url) + "' is no URL like http://127.0.0.1:7070");
  return {with_scheme.substr(0, path), prefix};
}

std::optional<std::chrono::seconds> retry_after(const httplib::Response& response) {
  const std::string text = response.get_header_value("Retry-After");
  if (text.empty() || text.size() > 6 || text.find_first_not_of("0123456789") != std::string::npos) return std::nullopt;
  return std::chrono::seconds(std::stoi(text));
}

}  // namespace

struct RestClient::Transport {
  explicit Transport(const std::string& origin) : http(origin) {}
  httplib::Client http;
};

std::string path_part(const std::string& text) { return encode(text); }

std::string to_text(const Json& body) {
  try {
    return body.dump();
  } catch (const Json::exception&) {
    throw BadUsage("an argument is not valid UTF-8");
  }
}

std::string with_query(const std::string& path, const Query& query) {
  std::string result = path;
  for (const auto& [name, value] : query)
    if (!value.empty()) result += (result.size() == path.size() ? "?" : "&") + name + "=" + encode(value);
  return result;
}

std::string problem_text(const RestReply& reply) {
  const auto text = [&](const char* key) {
    const auto value = reply.body.is_object() ? reply.body.find(key) : reply.body.end();
    return value != reply.body.end() && value->is_string() ? printable(value->get<std::string>()) : "";
  };
  std::string message = text("detail");
  if (message.empty()) message = text("title");
  if (message.empty()) message = "the server answered " + std::to_string(reply.status);
  if (const std::string field = text("field"); !field.empty()) message += " (field: " + field + ")";
  if (reply.status == 401 && message.ends_with('.')) message.pop_back();
  if (reply.status == 401) message += "; give --token or set TOCSIN_TOKEN";
  return message;
}

void throw_problem(const RestReply& reply) {
  const bool is_of_zone = reply.status == 422 && reply.body.is_object() && reply.body.value("field", Json()) == "tz";
  if (reply.status == 400 || is_of_zone) throw BadUsage(problem_text(reply));
  throw Failure(problem_text(reply));
}

RestClient::RestClient(const Connection& connection) : url_(connection.url) {
  const auto [origin, prefix] = split(connection.url);
  prefix_ = prefix;
  try {
    transport_ = std::make_unique<Transport>(origin);
  } catch (const std::exception&) {
    throw BadUsage("--url: '" + printable(connection.url) + "' is no URL like http://127.0.0.1:7070");
  }
  httplib::Client& http = transport_->http;
  http.set_connection_timeout(std::min<std::chrono::milliseconds>(kConnectTimeout, connection.timeout));
  http.set_read_timeout(connection.timeout);
  http.set_write_timeout(connection.timeout);
  http.set_keep_alive(true);
  http.set_tcp_nodelay(true);
  http.set_url_encode(false);  // paths come encoded
  if (!connection.token.empty()) http.set_bearer_token_auth(connection.token);
}

RestClient::~RestClient() = default;

RestReply RestClient::call(const std::string& method, const std::string& path, const Json* body) {
  return call_text(method, path, body ? to_text(*body) : "");
}

RestReply RestClient::call_text(const std::string& method, const std::string& path, const std::string& json) {
  httplib::Request request;
  request.method = method;
  request.path = prefix_ + path;
  request.body = json;
  request.set_header("Accept", "application/json");
  if (!json.empty()) request.set_header("Content-Type", "application/json");
  const httplib::Result result = transport_->http.send(request);
  if (!result) throw Failure("cannot reach " + url_ + ": " + reason(result.error()) + ". Is a node running there?");
  RestReply reply{result->status, Json(), result->body, retry_after(result.value())};
  if (result->body.empty()) return reply;
  reply.body = Json::parse(result->body, nullptr, /*allow_exceptions=*/false);
  if (reply.body.is_discarded())
    throw Failure(url_ + " answered " + std::to_string(reply.status) +
                  " with something other than JSON. Is it a Tocsin node?");
  return reply;
}

RestReply RestClient::get_reply(const std::string& path) {
  RestReply reply = call("GET", path);
  if (!reply.ok()) throw_problem(reply);
  return reply;
}

RestReply RestClient::send_reply(const std::string& method, const std::string& path, const Json& body) {
  RestReply reply = call(method, path, body.is_null() ? nullptr : &body);
  if (!reply.ok()) throw_problem(reply);
  return reply;
}

Json RestClient::post_patiently(const std::string& path, const Json& body) {
  for (;;) {
    RestReply reply = call("POST", path, &body);
    if (reply.ok()) return std::move(reply.body);
    if (reply.status != 429) throw_problem(reply);
    pause_for(reply.retry_after.value_or(std::chrono::seconds(1)));
  }
}

Pages read_pages(const Connection& connection, const std::string& path, Query query, bool are_all) {
  RestClient client(connection);
  Pages all;
  std::string items;
  do {
    RestReply page = client.get_reply(with_query(path, query));
    if (!page.body.is_object() || !page.body["items"].is_array())
      throw Failure(connection.url + " answered with something other than a list. Is it a Tocsin node?");
    const std::string more = raw_items(page.text);
    if (!items.empty() && !more.empty()) items += ',';
    items += more;
    for (Json& item : page.body["items"]) all.items.push_back(std::move(item));
    if (page.body.contains("missing")) all.missing = page.body["missing"];
    const Json& next = page.body["next_cursor"];
    all.next_cursor = next.is_string() ? next.get<std::string>() : "";
    std::erase_if(query, [](const auto& each) { return each.first == "cursor"; });
    query.emplace_back("cursor", all.next_cursor);
  } while (are_all && !all.next_cursor.empty());
  all.text =
      "{\"items\":[" + items + "],\"next_cursor\":" + (all.next_cursor.empty() ? "null" : Json(all.next_cursor).dump());
  if (!all.missing.empty()) all.text += ",\"missing\":" + all.missing.dump();
  all.text += '}';
  return all;
}

}  // namespace tocsin

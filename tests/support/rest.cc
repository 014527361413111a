#include "support/rest.h"

#include <httplib.h>

namespace tocsin {

struct Rest::Client {
  explicit Client(int port) : http("127.0.0.1", port) {}
  httplib::Client http;
};

namespace {

constexpr int kReadTimeoutSeconds = 30;  // seconds

Reply reply_of(const httplib::Result& result) {
  if (!result) return {};
  return {result->status, Json::parse(result->body, nullptr, false), result->body};
}

}  // namespace

Rest::Rest(int port, const std::string& token) : client_(std::make_unique<Client>(port)) {
  client_->http.set_keep_alive(true);
  client_->http.set_tcp_nodelay(true);
  client_->http.set_read_timeout(kReadTimeoutSeconds, 0);
  if (!token.empty()) client_->http.set_bearer_token_auth(token);
}
Rest::~Rest() = default;
Rest::Rest(Rest&&) noexcept = default;
Rest& Rest::operator=(Rest&&) noexcept = default;

Reply Rest::get(const std::string& path) { return reply_of(client_->http.Get(path)); }
Reply Rest::put(const std::string& path, const Json& body) {
  return reply_of(client_->http.Put(path, body.dump(), "application/json"));
}
Reply Rest::post(const std::string& path, const Json& body) {
  return reply_of(client_->http.Post(path, body.dump(), "application/json"));
}
Reply Rest::remove(const std::string& path) { return reply_of(client_->http.Delete(path)); }

}  // namespace tocsin

#include "replay/receiver.h"

#include <charconv>
#include <iostream>
#include <nlohmann/json.hpp>

namespace tocsin::replay {
namespace {

template <class Number>
Number number(const std::string& text) {
  Number value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

}  // namespace

Receiver::Receiver() : receiver_([this](const bench::WebhookRequest& request) { return take(request); }) {}

std::vector<Delivery> Receiver::deliveries() const {
  MutexLock lock(mutex_);
  return deliveries_;
}

bool Receiver::take(const bench::WebhookRequest& request) {
  const auto body = nlohmann::json::parse(request.body, nullptr, /*allow_exceptions=*/false);
  const auto data = body.is_object() ? body.find("data") : body.end();
  if (data == body.end() || !data->is_object() || !data->contains("biz_id") || !(*data)["biz_id"].is_string()) {
    std::cerr << "a delivery without data.biz_id: " << request.body << '\n';
    return false;
  }
  MutexLock lock(mutex_);
  deliveries_.push_back({(*data)["biz_id"].get<std::string>(), number<std::int64_t>(request.job_id),
                         number<int>(request.attempt), request.at});
  ++count_;
  return true;
}

}  // namespace tocsin::replay

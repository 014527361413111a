// A webhook kind, and what tests deliver through it.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/system_clock.h"
#include "delivery/webhook.h"
#include "unit/delivery/scripted_server.h"

namespace tocsin {

using namespace std::chrono_literals;
using nlohmann::json;
using Kind = Outcome::Kind;

inline const char kOk[] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
inline const WallTime kNow{std::chrono::seconds(1700000000) + 900ms};
inline const char kSecret[] = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3";

inline std::string answer(const std::string& status, const std::string& headers = "") {
  return "HTTP/1.1 " + status + "\r\n" + headers + "Content-Length: 2\r\n\r\nok";
}

inline ClaimedJob a_job(Duration lease = 30s) {
  ClaimedJob claimed;
  claimed.job.job_id = 65537;
  claimed.job.biz_type = "order.unpaid";
  claimed.job.action_time = WallTime(std::chrono::seconds(1772366400) + 250ms);  // 2026-03-01T12:00:00.250Z
  claimed.job.attempts = 3;
  claimed.lease_deadline = SystemClock().now() + lease;
  return claimed;
}

// A client and the types that tests deliver through it.
class Webhook : public testing::Test {
 protected:
  explicit Webhook(WebhookOptions options = {"1.2.3", {}})
      : client_(
            on_loopback(std::move(options)), clock_, [] { return kNow; },
            [](const Job& job) {
              return json{{"job_id", std::to_string(job.job_id)}}.dump();
            }) {}

  static WebhookOptions on_loopback(WebhookOptions options) {
    options.http.guard = *AddressGuard::allowing({}, /*allow_loopback=*/true);
    return options;
  }

  void SetUp() override { ASSERT_TRUE(client_.start().ok()); }

  std::future<Outcome> begin(const std::string& url, const json& settings = json::object(),
                             const ClaimedJob& job = a_job()) {
    BizType type;
    type.name = "order.unpaid";
    json handler = {{"kind", "webhook"}, {"url", url}, {"timeout_ms", 20000}};
    handler.update(settings);
    type.handler_json = handler.dump();
    auto promise = std::make_shared<std::promise<Outcome>>();
    handlers_.push_back(client_.make(type));  // an endpoint is known as long as a handler uses it
    EXPECT_NE(handlers_.back(), nullptr) << type.handler_json;
    handlers_.back()->start(job, [promise](Outcome outcome) { promise->set_value(std::move(outcome)); });
    return promise->get_future();
  }
  Outcome deliver(const std::string& url, const json& settings = json::object(), const ClaimedJob& job = a_job()) {
    return begin(url, settings, job).get();
  }
  static std::string url_of(const ScriptedServer& server) {
    return "http://127.0.0.1:" + std::to_string(server.port()) + "/hook?a=b";
  }

  SystemClock clock_;
  WebhookKind client_;
  std::vector<std::shared_ptr<Handler>> handlers_;
};

}  // namespace tocsin

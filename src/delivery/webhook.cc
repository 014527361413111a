#include "delivery/webhook.h"

#include <algorithm>
#include <boost/beast/http/status.hpp>
#include <charconv>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "delivery/signature.h"
#include "delivery/webhook_settings.h"

namespace tocsin {
namespace {

constexpr Duration kNoConnectionPause = std::chrono::seconds(1);
constexpr std::chrono::seconds kLongestRetryAfter = std::chrono::hours(24);

std::string to_rfc3339(WallTime time) {
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(time - day);
  char text[64];
  std::snprintf(text, sizeof text, "%04d-%02u-%02uT%02d:%02d:%02d.%06dZ", static_cast<int>(date.year()),
                static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                static_cast<int>(clock.hours().count()), static_cast<int>(clock.minutes().count()),
                static_cast<int>(clock.seconds().count()), static_cast<int>(clock.subseconds().count()));
  return text;
}

// Retry-After in its form of seconds; anything else counts as absent.
std::optional<Duration> read_retry_after(const std::string& text) {
  const bool is_number = !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
  if (!is_number) return {};
  std::int64_t seconds = 0;
  const bool is_huge = std::from_chars(text.data(), text.data() + text.size(), seconds).ec != std::errc();
  if (is_huge || seconds > kLongestRetryAfter.count()) return kLongestRetryAfter;
  return std::chrono::seconds(seconds);
}

Outcome outcome_of(const Result<OutboundReply>& answer, const std::string& origin) {
  // An attempt that never got its turn is none.
  if (!answer && answer.error().code == ErrorCode::conflict) return Outcome::not_started(kNoConnectionPause);
  if (!answer) return Outcome::retry(answer.error().message);
  const OutboundReply& reply = answer.value();
  if (reply.status / 100 == 2) return Outcome::done();
  std::string message = origin + " answered " + std::to_string(reply.status);
  if (const auto known = boost::beast::http::int_to_status(static_cast<unsigned>(reply.status));
      known != boost::beast::http::status::unknown) {
    // The standard phrase: the peer's own words have no place in logs.
    message += " " + std::string(boost::beast::http::obsolete_reason(known));
  }
  if (reply.status == 410) return Outcome::dead(std::move(message));
  if (reply.status / 100 == 3) message += " (redirects are not followed)";
  const bool asks_for_time = reply.status == 429 || reply.status == 503;
  return Outcome::retry(std::move(message), asks_for_time ? read_retry_after(reply.retry_after) : std::nullopt);
}

}  // namespace

class WebhookKind::TypeHandler final : public Handler {
 public:
  TypeHandler(WebhookKind& client, const BizType& type, WebhookSettings its_settings)
      : settings(std::move(its_settings)), type_json(nlohmann::json(type.name).dump()), client_(client) {}

  // The one place where what the libraries throw is caught.
  void start(const ClaimedJob& job, Finish finish) override {
    try {
      client_.deliver(*this, job, finish);
    } catch (const std::exception& error) {
      finish(Outcome::retry(std::string("cannot write the request: ") + error.what()));
    }
  }

  // As many waiting as on their way: what ends is followed at once.
  std::size_t room() const override { return 2 * static_cast<std::size_t>(client_.options_.http.max_connections); }

  const WebhookSettings settings;
  const std::string type_json;

 private:
  WebhookKind& client_;
};

WebhookKind::WebhookKind(WebhookOptions options, const Clock& clock, WallNow wall_now, JobWriter write_job)
    : options_(std::move(options)),
      wall_now_(std::move(wall_now)),
      write_job_(std::move(write_job)),
      sender_(options_.http, clock) {}
WebhookKind::~WebhookKind() = default;
Status WebhookKind::start() { return sender_.start(); }
// Requests had their grace while the engine drained; what is in flight now is cancelled.
void WebhookKind::stop(Duration) { sender_.stop(); }

std::optional<Error> WebhookKind::check(const BizType& type) const {
  return check_webhook(type.handler_json, type.ttr);
}

std::shared_ptr<Handler> WebhookKind::make(const BizType& type) {
  auto settings = parse_webhook_settings(type.handler_json);
  if (!settings) return nullptr;
  return std::make_shared<TypeHandler>(*this, type, std::move(settings).value());
}

void WebhookKind::deliver(const TypeHandler& handler, const ClaimedJob& claimed, Handler::Finish finish) {
  const Job& job = claimed.job;
  const WebhookSettings& settings = handler.settings;
  const std::string id = std::to_string(job.job_id);
  const std::int64_t timestamp = std::chrono::floor<std::chrono::seconds>(wall_now_()).time_since_epoch().count();

  OutboundRequest request;
  request.target = settings.target;
  request.timeout = settings.timeout;
  request.deadline = claimed.lease_deadline;
  request.start_by = claimed.start_by;
  request.body = R"({"type":)" + handler.type_json + R"(,"timestamp":")" + to_rfc3339(job.action_time) +
                 R"(","data":)" + write_job_(job) + "}";
  request.headers = settings.headers;
  request.headers.emplace_back("content-type", "application/json");
  request.headers.emplace_back("user-agent", "tocsin/" + options_.version);
  request.headers.emplace_back("webhook-id", id);
  request.headers.emplace_back("webhook-timestamp", std::to_string(timestamp));
  request.headers.emplace_back("tocsin-attempt", std::to_string(job.attempts));
  if (job.traceparent) request.headers.emplace_back("traceparent", *job.traceparent);
  if (!settings.secret.empty()) {
    request.headers.emplace_back("webhook-signature", sign_webhook(settings.secret, id, timestamp, request.body));
  }
  sender_.send(std::move(request), [finish = std::move(finish), origin = settings.target.origin](
                                       Result<OutboundReply> answer) { finish(outcome_of(answer, origin)); });
}

}  // namespace tocsin

#include "delivery/webhook.h"

#include <algorithm>
#include <boost/beast/http/status.hpp>
#include <nlohmann/json.hpp>

#include "core/duration_text.h"
#include "core/lease_token.h"
#include "core/rfc3339.h"
#include "delivery/event_body.h"
#include "delivery/retry_after.h"
#include "delivery/signature.h"
#include "delivery/webhook_settings.h"

namespace tocsin {
namespace {

Outcome outcome_of_status(const OutboundReply& reply, const std::string& origin, WallTime now) {
  std::string message = origin + " answered " + std::to_string(reply.status);
  if (const auto known = boost::beast::http::int_to_status(static_cast<unsigned>(reply.status));
      known != boost::beast::http::status::unknown) {
    // The standard phrase: text of the peer must not reach the logs.
    message += " " + std::string(boost::beast::http::obsolete_reason(known));
  }
  if (reply.status == 410) return Outcome::dead(std::move(message));
  if (reply.status / 100 == 3) message += " (redirects are not followed)";
  const bool asks_for_time = reply.status == 429 || reply.status == 503;
  // A receiver that names too short a time, such as a restarting gateway, must not use up the attempts of its jobs.
  return Outcome::retry_no_sooner(std::move(message),
                                  asks_for_time ? read_retry_after(reply.retry_after, now) : std::nullopt);
}

// What an attempt got when its turn for a connection came.
struct AttemptPermit {
  std::optional<Endpoint::Permit> permit;  // empty: its turn has not come, or the breaker refused it
  bool is_refused = false;
  MonoTime begun{};
};

// Reports the result of an attempt to its endpoint. Any HTTP answer counts as an answer: an endpoint that refuses
// quickly costs little, and the back-off of its jobs limits the attempts.
void report(Endpoint& endpoint, const AttemptPermit& attempt, const Result<OutboundReply>& answer, MonoTime now) {
  if (!attempt.permit) {
    if (!attempt.is_refused && !answer && answer.error().code == ErrorCode::conflict)
      endpoint.connection_wait_timed_out();
    return;
  }
  if (answer) return endpoint.answered(now - attempt.begun);
  const ErrorCode code = answer.error().code;
  if (code == ErrorCode::unavailable || code == ErrorCode::in_doubt)
    endpoint.failed(*attempt.permit, now - attempt.begun);
  else
    endpoint.abandoned(*attempt.permit);
}

}  // namespace

class WebhookKind::TypeHandler final : public Handler {
 public:
  TypeHandler(WebhookKind& client, const BizType& type, WebhookSettings its_settings)
      : settings(std::move(its_settings)),
        type_json(nlohmann::json(type.name).dump()),
        endpoint(client.endpoints_.at(settings.target.origin)),
        client_(client) {}

  // The only place that catches what the libraries throw.
  void start(const ClaimedJob& job, Finish finish) override {
    try {
      client_.deliver(*this, job, finish);
    } catch (const std::exception& error) {
      finish(Outcome::retry(std::string("cannot write the request: ") + error.what()));
    }
  }

  std::shared_ptr<const StartPool> pool() const override { return endpoint; }

  std::string hold_reason() const override {
    const std::string who = endpoint->name();
    switch (endpoint->state()) {
      case Endpoint::State::open:
        return who + " has not answered for a while and is left alone for another " +
               duration_text(endpoint->pause_left());
      case Endpoint::State::half_open:
        return who + " has not answered for a while and gets one attempt at a time until it does";
      case Endpoint::State::closed:
        break;
    }
    return {};
  }

  const WebhookSettings settings;
  const std::string type_json;
  const std::shared_ptr<Endpoint> endpoint;

 private:
  WebhookKind& client_;
};

WebhookKind::WebhookKind(WebhookOptions options, const Clock& clock, WallNow wall_now, JobWriter write_job)
    : options_(std::move(options)),
      clock_(clock),
      wall_now_(std::move(wall_now)),
      write_job_(std::move(write_job)),
      sender_(options_.http, clock),
      endpoints_(options_.breaker, static_cast<std::size_t>(options_.http.max_connections), clock,
                 [this](Endpoint::State, MonoTime again_at) {
                   notify_capacity();
                   if (again_at != MonoTime::max()) sender_.call_at(again_at, [this] { notify_capacity(); });
                 }) {}

// Before the endpoints are destroyed, which the sender's threads use.
WebhookKind::~WebhookKind() { sender_.stop(); }
Status WebhookKind::start() { return sender_.start(); }
// The engine has drained before, which was the requests' grace period.
void WebhookKind::stop(Duration) { sender_.stop(); }

// Many endpoints may change within moments: one notification for all of them.
void WebhookKind::notify_capacity() {
  constexpr Duration kTogether = std::chrono::milliseconds(5);
  if (!capacity_changed_ || is_notification_scheduled_.exchange(true)) return;
  sender_.call_at(clock_.now() + kTogether, [this] {
    is_notification_scheduled_ = false;
    capacity_changed_();
  });
}

std::vector<KindMetric> WebhookKind::metrics() {
  const auto of_sender = [this](std::int64_t HttpSenderStats::*member) {
    return [this, member] { return static_cast<double>(sender_.stats().*member); };
  };
  return {
      {"tocsin_webhook_in_flight", "Webhook requests on their way", false, of_sender(&HttpSenderStats::in_flight)},
      {"tocsin_webhook_waiting", "Webhook attempts that wait for a connection", false,
       of_sender(&HttpSenderStats::waiting)},
      {"tocsin_webhook_requests_total", "Webhook requests sent, or in part", true,
       of_sender(&HttpSenderStats::requests)},
      {"tocsin_webhook_connects_total", "Attempts to connect to endpoints", true,
       of_sender(&HttpSenderStats::connects)},
      {"tocsin_webhook_unanswered_total", "Webhook attempts without an answer", true,
       [this] { return static_cast<double>(unanswered_); }},
      {"tocsin_webhook_handed_over_total", "Webhooks whose receivers acknowledge them later", true,
       [this] { return static_cast<double>(handed_over_); }},
      {"tocsin_webhook_paused_endpoints",
       "Endpoints that get a pause, or one attempt at a time, for they answer nothing", false,
       [this] { return endpoints_.tripped_breakers(); }},
      {"tocsin_webhook_pauses_total", "Pauses that endpoints were given", true,
       [this] { return static_cast<double>(endpoints_.trips()); }},
  };
}

std::optional<Error> WebhookKind::check(const BizType& type) const {
  if (auto error = check_webhook(type.handler_json, type.ttr)) return error;
  const auto settings = parse_webhook_settings(type.handler_json);
  if (!options_.http.guard.refuses_literal(settings->target.host)) return {};
  return Error{ErrorCode::invalid, "webhooks may not call this address (see --allow-webhook)", "handler.url"};
}

std::shared_ptr<Handler> WebhookKind::make(const BizType& type) {
  auto settings = parse_webhook_settings(type.handler_json);
  if (!settings) return nullptr;
  return std::make_shared<TypeHandler>(*this, type, std::move(settings).value());
}

OutboundRequest WebhookKind::request_for(const TypeHandler& handler, const ClaimedJob& claimed) const {
  const Job& job = claimed.job;
  const WebhookSettings& settings = handler.settings;
  const std::string id = std::to_string(job.job_id);
  const std::int64_t timestamp = std::chrono::floor<std::chrono::seconds>(wall_now_()).time_since_epoch().count();

  OutboundRequest request;
  request.target = settings.target;
  request.timeout = settings.timeout;
  request.deadline = claimed.lease_deadline;
  request.start_by = claimed.start_by;
  request.body = event_body(handler.type_json, job, write_job_(job));
  request.headers = settings.headers;
  request.headers.emplace_back("content-type", "application/json");
  request.headers.emplace_back("user-agent", "tocsin/" + options_.version);
  request.headers.emplace_back("webhook-id", id);
  request.headers.emplace_back("webhook-timestamp", std::to_string(timestamp));
  request.headers.emplace_back("tocsin-attempt", std::to_string(job.attempts));
  if (job.traceparent) request.headers.emplace_back("traceparent", *job.traceparent);
  if (settings.is_async) {
    request.headers.emplace_back("tocsin-lease-token", lease_token_text(claimed.token));
    request.headers.emplace_back("tocsin-lease-until", rfc3339(job.fire_at));
  }
  if (!settings.keys.empty())
    request.headers.emplace_back("webhook-signature", sign_webhook(settings.keys, id, timestamp, request.body));
  return request;
}

void WebhookKind::deliver(const TypeHandler& handler, const ClaimedJob& claimed, Handler::Finish finish) {
  // Claimed before the back-off began: released, so that no attempt is spent. The pool has no capacity until the
  // back-off ends, so the job may stay due at its time.
  if (handler.endpoint->pause_left() > Duration(0)) return finish(Outcome::not_started(Duration(0)));
  OutboundRequest request = request_for(handler, claimed);
  const auto attempt = std::make_shared<AttemptPermit>();
  request.may_begin = [this, attempt, endpoint = handler.endpoint] {
    *attempt = {endpoint->admit(), false, clock_.now()};
    attempt->is_refused = !attempt->permit;
    return attempt->permit.has_value();
  };
  // The handler may be replaced, and be gone, before the answer comes.
  sender_.send(std::move(request), [this, attempt, endpoint = handler.endpoint, is_async = handler.settings.is_async,
                                    finish = std::move(finish)](const Result<OutboundReply>& answer) {
    report(*endpoint, *attempt, answer, clock_.now());
    finish(outcome_of(answer, is_async, *endpoint));
  });
}

Outcome WebhookKind::outcome_of(const Result<OutboundReply>& answer, bool is_async, Endpoint& endpoint) {
  if (!answer) {
    // It got no connection in time, or the breaker refused it: the attempt does not count.
    if (answer.error().code == ErrorCode::conflict) return Outcome::not_started(Duration(0));
    ++unanswered_;
    endpoint.note_error(answer.error().message);
    return Outcome::retry(answer.error().message);
  }
  if (is_async && answer->status == 202) {
    ++handed_over_;
    return Outcome::handed_over();
  }
  if (answer->status / 100 == 2) return Outcome::done();
  Outcome outcome = outcome_of_status(*answer, endpoint.origin(), wall_now_());
  endpoint.note_error(outcome.message);
  return outcome;
}

}  // namespace tocsin

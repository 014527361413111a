// The handler kind `webhook`: delivers jobs as HTTP POSTs.
//
// The attempt ends done on 2xx and dead on 410. Any other answer, and a request that failed or got no answer, is a
// retry, not before the time that Retry-After of a 429 or 503 gives (a day at most). An attempt whose turn for a
// connection does not come in time, or whose endpoint's circuit breaker is open, ends as not started: the job is
// pending again, and the attempt is not counted. With `async`, 202 hands the job over: its receiver acknowledges it
// with the lease token that came with the request, or the lease ends. One attempt is at most one request; its limits:
// http_sender.h. Jobs of an endpoint that does not answer are not claimed for a while (circuit_breaker.h).
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "delivery/endpoints.h"
#include "delivery/handler_kind.h"
#include "delivery/http_sender.h"

namespace tocsin {

struct WebhookOptions {
  std::string version;  // for the User-Agent
  HttpSenderOptions http;
  BreakerOptions breaker = {};
};

// One per node, for all webhook types: connections, their threads, and the endpoints.
// Thread: start, stop, destructor, metrics and on_capacity_change owner only; the rest any.
class WebhookKind final : public HandlerKind {
 public:
  // A job as JSON text; called on the thread that starts attempts.
  using JobWriter = std::function<std::string(const Job&)>;
  using WallNow = std::function<WallTime()>;

  // `wall_now`: the database's time, for the timestamp header and for dates in Retry-After. REQUIRES: `clock` outlives
  // the kind.
  WebhookKind(WebhookOptions options, const Clock& clock, WallNow wall_now, JobWriter write_job);
  ~WebhookKind() override;

  std::string name() const override { return "webhook"; }
  std::optional<Error> check(const BizType& type) const override;
  std::shared_ptr<Handler> make(const BizType& type) override;
  Status start() override;
  // Cancels what is in flight at once: the engines have given it its grace period before, so `grace` is not used.
  void stop(Duration grace) override;
  std::vector<KindMetric> metrics() override;
  std::vector<EndpointInfo> endpoints() const override { return endpoints_.infos(); }
  void on_capacity_change(std::function<void()> changed) override { capacity_changed_ = std::move(changed); }

 private:
  class TypeHandler;

  void deliver(const TypeHandler& handler, const ClaimedJob& claimed, Handler::Finish finish);
  OutboundRequest request_for(const TypeHandler& handler, const ClaimedJob& claimed) const;
  // Counts hand-overs and missing answers, and notes an error at `endpoint`, for display.
  Outcome outcome_of(const Result<OutboundReply>& answer, bool is_async, Endpoint& endpoint);
  // Calls capacity_changed_ on a sender's thread 5 ms later, once for all changes until then.
  void notify_capacity();

  const WebhookOptions options_;
  const Clock& clock_;
  const WallNow wall_now_;
  const JobWriter write_job_;
  std::function<void()> capacity_changed_;  // of on_capacity_change(); empty: none
  std::atomic<bool> is_notification_scheduled_{false};
  std::atomic<std::int64_t> handed_over_{0}, unanswered_{0};  // attempts since the start, for metrics
  HttpSender sender_;
  Endpoints endpoints_;
};

}  // namespace tocsin

// WebhookKind: the handler kind `webhook`, which delivers jobs as HTTP POSTs. Owned by HandlerRegistry. One attempt is
// at most one request; http_sender.h has its limits. How an attempt ends:
//  - Status 2xx: done. Status 410: dead.
//  - Another status, a failed request or no answer: a retry. It comes not before the time in Retry-After of a 429 or
//    503 (a day at most).
//  - Its turn for a connection does not come in time, or the endpoint's circuit breaker is open: not started. The job
//    is pending again, and the attempt is not counted.
//  - Status 202 with `async`: the job is handed over. Its receiver acknowledges it with the lease token of the request,
//    or the lease ends.
// Jobs of an endpoint that does not answer are not claimed for a while (circuit_breaker.h).
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

// One per node, for all webhook types: connections, their threads, and endpoints. Thread: start, stop, destructor,
// metrics and on_capacity_change owner only; the rest any.
class WebhookKind final : public HandlerKind {
 public:
  // Returns a job as JSON text. Called on the thread that starts attempts.
  using JobWriter = std::function<std::string(const Job&)>;
  using WallNow = std::function<WallTime()>;

  // `wall_now`: the time by the database's clock, for the timestamp header and for dates in Retry-After. REQUIRES:
  // `clock` outlives the kind.
  WebhookKind(WebhookOptions options, const Clock& clock, WallNow wall_now, JobWriter write_job);
  ~WebhookKind() override;

  std::string name() const override { return "webhook"; }
  std::optional<Error> check(const BizType& type) const override;
  std::shared_ptr<Handler> make(const BizType& type) override;
  Status start() override;
  // Cancels all requests at once. `grace` is not used, because the engines have waited for running attempts before.
  void stop(Duration grace) override;
  std::vector<KindMetric> metrics() override;
  std::vector<EndpointInfo> endpoints() const override { return endpoints_.infos(); }
  void on_capacity_change(std::function<void()> changed) override { capacity_changed_ = std::move(changed); }

 private:
  class TypeHandler;

  void deliver(const TypeHandler& handler, const ClaimedJob& claimed, Handler::Finish finish);
  OutboundRequest request_for(const TypeHandler& handler, const ClaimedJob& claimed) const;
  // Counts hand-overs and missing answers, and stores an error in `endpoint` for display.
  Outcome outcome_of(const Result<OutboundReply>& answer, bool is_async, Endpoint& endpoint);
  // Calls capacity_changed_ 5 ms later on a sender's thread, once for all changes until then.
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

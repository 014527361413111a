// Delivers jobs as HTTP POSTs.
//
// The attempt ends done on 2xx, dead on 410, and is retried on every other answer and on every failure; Retry-After of
// 429 and 503 is honoured. One attempt is at most one request. What a request may take, use and trust:
// delivery/http_sender.h.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "delivery/handler_kind.h"
#include "delivery/http_sender.h"

namespace tocsin {

struct WebhookOptions {
  std::string version;  // for the User-Agent
  HttpSenderOptions http;
};

// What the deliveries of all webhook types share: connections and their thread.
// Thread: as HandlerKind.
class WebhookKind final : public HandlerKind {
 public:
  using JobWriter =
      std::function<std::string(const Job&)>;  // a job as JSON text; called on the thread that starts attempts
  using WallNow = std::function<WallTime()>;

  WebhookKind(WebhookOptions options, const Clock& clock, WallNow wall_now, JobWriter write_job);
  ~WebhookKind() override;

  std::string name() const override { return "webhook"; }
  std::optional<Error> check(const BizType& type) const override;
  std::shared_ptr<Handler> make(const BizType& type) override;
  Status start() override;
  void stop(Duration grace) override;

 private:
  class TypeHandler;
  void deliver(const TypeHandler& handler, const ClaimedJob& claimed, Handler::Finish finish);

  const WebhookOptions options_;
  const WallNow wall_now_;
  const JobWriter write_job_;
  HttpSender sender_;
};

}  // namespace tocsin

// Delivers jobs as HTTP POSTs.
//
// The attempt ends done on 2xx, dead on 410, and is retried on every other answer and on every failure; Retry-After of
// 429 and 503 is honoured. One attempt is at most one request. What a request may take, use and trust:
// delivery/http_sender.h.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "delivery/http_sender.h"
#include "tocsin/biz_type.h"
#include "tocsin/handler.h"

namespace tocsin {

struct WebhookOptions {
  std::string version;  // for the User-Agent
  HttpSenderOptions http;
};

// What the deliveries of all webhook types share: connections and their thread.
// Thread: start, stop, destructor owner only; the rest any.
class WebhookClient {
 public:
  using JobWriter =
      std::function<std::string(const Job&)>;  // a job as JSON text; called on the thread that starts attempts
  using WallNow = std::function<WallTime()>;

  WebhookClient(WebhookOptions options, const Clock& clock, WallNow wall_now, JobWriter write_job);
  ~WebhookClient();

  Status start();
  // Cancels what is in flight: each attempt ends with a retry "shutting down", as does every later one.
  void stop();

  // Delivers the jobs of one type; null when its settings are wrong (see check_webhook). REQUIRES: the client outlives
  // it.
  std::shared_ptr<Handler> handler_for(const BizType& type);

 private:
  class TypeHandler;
  void deliver(const TypeHandler& handler, const ClaimedJob& claimed, Handler::Finish finish);

  const WebhookOptions options_;
  const WallNow wall_now_;
  const JobWriter write_job_;
  HttpSender sender_;
};

}  // namespace tocsin

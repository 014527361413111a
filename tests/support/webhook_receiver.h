// WebhookReceiver: an HTTP server that nodes under test deliver webhooks to. It records each delivery and answers as
// the test says.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "support/rest.h"

namespace tocsin {

struct Delivery {
  std::map<std::string, std::string> headers;  // by lower-case name
  Json body;
  std::string text;  // the body as it came
};

// Thread: any.
class WebhookReceiver {
 public:
  WebhookReceiver();
  ~WebhookReceiver();
  WebhookReceiver(const WebhookReceiver&) = delete;
  WebhookReceiver& operator=(const WebhookReceiver&) = delete;

  std::string url() const;
  // The handler settings of a type that delivers here.
  Json handler() const { return {{"kind", "webhook"}, {"url", url()}}; }

  void answer(int status);  // the status of later answers; 200 at first
  void hold();              // later deliveries wait without an answer
  void release();           // ends hold(): answers the waiting ones
  std::vector<Delivery> deliveries() const;
  std::size_t count() const { return deliveries().size(); }
  std::size_t most_at_once() const;  // the largest number of unanswered deliveries at one time

 private:
  struct Server;
  std::unique_ptr<Server> server_;
};

}  // namespace tocsin

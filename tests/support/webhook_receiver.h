// Where nodes under test deliver: writes down what comes and answers as told.
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
  // The handler object of a type that delivers here.
  Json handler() const { return {{"kind", "webhook"}, {"url", url()}}; }

  void answer(int status);  // from now on; 200 at first
  void hold();              // from now on no delivery is answered,
  void release();           // until now
  std::vector<Delivery> deliveries() const;
  std::size_t count() const { return deliveries().size(); }
  std::size_t most_at_once() const;  // deliveries that were here at the same time

 private:
  struct Server;
  std::unique_ptr<Server> server_;
};

}  // namespace tocsin

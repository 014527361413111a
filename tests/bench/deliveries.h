// Deliveries: an HTTP receiver of webhooks that keeps every request. `delay`: its time to answer.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "bench_core/receiver.h"

namespace tocsin::bench {

// Thread: owner only, except count() (any).
class Deliveries {
 public:
  explicit Deliveries(std::chrono::milliseconds delay = {})
      : receiver_([this](WebhookRequest request) { return keep(std::move(request)); }, delay) {}

  int port() const { return receiver_.port(); }
  std::string url() const { return receiver_.url(); }
  std::string url_of(int n) const { return receiver_.url_of(n); }
  std::int64_t count() const { return count_; }

  // Stops the receiver and returns all requests.
  const std::vector<WebhookRequest>& stop() {
    receiver_.stop();
    return all_;
  }

 private:
  bool keep(WebhookRequest request) {
    all_.push_back(std::move(request));
    ++count_;
    return true;
  }

  std::vector<WebhookRequest> all_;  // used by the receiver's thread until it has stopped
  std::atomic<std::int64_t> count_{0};
  Receiver receiver_;
};

}  // namespace tocsin::bench

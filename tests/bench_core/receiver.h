// Where webhooks go: an HTTP server of this program that hands on what comes, and when it came.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>

namespace tocsin::bench {

// One request of a node, as its last byte was read.
struct WebhookRequest {
  std::chrono::sys_time<std::chrono::microseconds> at{};
  std::string body;
  std::string job_id;   // the header webhook-id
  std::string attempt;  // the header tocsin-attempt
};

// Thread: owner only.
class Receiver {
 public:
  // Called on the thread of the receiver. True: the answer is 200; false: 400.
  using OnRequest = std::function<bool(WebhookRequest)>;
  // `delay`: from a request to its answer.
  explicit Receiver(OnRequest on_request, std::chrono::milliseconds delay = {});
  ~Receiver();
  Receiver(const Receiver&) = delete;
  Receiver& operator=(const Receiver&) = delete;

  int port() const;
  std::string url() const;
  // The same receiver under another address of this machine: to a node another endpoint. `n` < 60,000.
  std::string url_of(int n) const;
  // Nothing is called any more when it returns. May be called again.
  void stop();

 private:
  struct Server;
  std::unique_ptr<Server> server_;
  std::thread thread_;
};

}  // namespace tocsin::bench

// Where webhooks go: an HTTP server of this program that answers 200 and writes down what came, and when.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace tocsin::bench {

// Thread: owner only, but for count().
class Receiver {
 public:
  struct Delivery {
    std::chrono::sys_time<std::chrono::microseconds> at{};  // when its last byte was read
    std::string body;
  };

  // `delay`: from a request to its answer.
  explicit Receiver(std::chrono::milliseconds delay = {});
  ~Receiver();
  Receiver(const Receiver&) = delete;
  Receiver& operator=(const Receiver&) = delete;

  int port() const;
  std::string url() const;
  // The same receiver under another address of this machine: to a node another endpoint. `n` < 60,000.
  std::string url_of(int n) const;
  std::int64_t count() const { return count_; }

  // Ends the server; then what it received.
  const std::vector<Delivery>& stop();

 private:
  struct Server;
  std::vector<Delivery> deliveries_;
  std::atomic<std::int64_t> count_{0};
  std::unique_ptr<Server> server_;
  std::thread thread_;
};

}  // namespace tocsin::bench

// Where the node under test delivers: an HTTP server on a port of its own that writes down what comes, and when.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace tocsin::replay {

struct Delivery {
  std::string biz_id;
  std::int64_t job_id = 0;
  int attempt = 0;
  std::chrono::sys_time<std::chrono::microseconds> at{};  // when its last byte was read
};

// Thread: any.
class Receiver {
 public:
  Receiver();
  ~Receiver();
  Receiver(const Receiver&) = delete;
  Receiver& operator=(const Receiver&) = delete;

  std::string url() const;
  std::int64_t count() const { return count_; }
  std::vector<Delivery> deliveries() const;

 private:
  struct Server;
  void add(Delivery delivery);

  mutable std::mutex mutex_;
  std::vector<Delivery> deliveries_;
  std::atomic<std::int64_t> count_{0};
  std::unique_ptr<Server> server_;
  std::thread thread_;
};

}  // namespace tocsin::replay
